"""A distribution as a table with a row for each instance, and as a chart of one of them."""

import io
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import KINDS, batches, many, n_labels, predictions

import labelsure as ls
from labelsure.distributions._instance_table import make_table
from labelsure.distributions.candidates import CANDIDATES, PAPER_CANDIDATES

mpl.use("Agg")

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "tables_and_plots.md"
COLUMNS = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
DIST = ls.IndependentLabels([[0.9, 0.2], [0.1, 0.1], [0.3, 0.8]], ["cat", "dog"])
INDEX = pd.Index(["z", "x", "y"], name="id")


def row_of(table, i, left_out=()):
    return {name: table[name].iloc[i] for name in table if name not in left_out}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_rows_are_those_of_the_loop(kind, data):
    batch = data.draw(batches(kind, labels=n_labels(1, 4)))
    k = data.draw(st.integers(0, 20))
    names = [f"y{j}" for j in range(batch.n_labels)]
    decided = data.draw(predictions(batch))
    table = make_table(batch.dist, decided, {}, k=k, probabilities=True, sep=None)
    shown = [f"top_{i + 1}" for i in range(min(k, 2**batch.n_labels))]
    for i, P in enumerate(batch.P):
        found = row_of(table, i, shown)
        expected = oracles.instance_row(P, decided[i], names, k)
        assert list(found) == list(expected)
        assert found.pop("predicted") == expected.pop("predicted")
        assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-6)
        # Of equally probable labelsets rounding may put another one first.
        tops = [table[name].iloc[i] for name in shown]
        assert len(set(tops)) == len(tops)
        codes = [oracles.code_of([int(name in labels) for name in names]) for labels in tops]
        of_tops = [found[f"{name}_probability"] for name in shown]
        assert of_tops == pytest.approx([P[code] for code in codes], abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_distribution_shows_its_mode_and_its_candidates(kind):
    dist = many(kind, 7, L=3, label_names=["a", "b", "c"])
    table = dist.to_frame()
    assert table["predicted"].tolist() == ls.labelsets.to_names(dist.mode(), ["a", "b", "c"])
    assert table["predicted"].tolist() == table["top_1"].tolist()
    np.testing.assert_allclose(table["probability"], dist.profile().top, rtol=1e-5)
    pd.testing.assert_frame_equal(table[list(PAPER_CANDIDATES)], ls.confidence(dist))
    np.testing.assert_array_equal(table["top_3_probability"], dist.top(3).probabilities[:, 2])
    assert "top_4" not in table
    for j, name in enumerate("abc"):
        np.testing.assert_array_equal(table[f"probability_{name}"], dist.marginals()[:, j])


def test_columns_are_left_out_on_request():
    short = DIST.to_frame(0, candidates=[], probabilities=False)
    assert list(short) == ["predicted", "probability"]
    assert list(DIST.to_frame(1, candidates="SE", probabilities=False)) == [
        "predicted", "probability", "SE", "top_1", "top_1_probability",
    ]  # fmt: skip


def test_no_more_labelsets_than_there_are():
    table = ls.IndependentLabels([[0.4]]).to_frame()
    assert table[["top_1", "top_2"]].iloc[0].tolist() == [(), ("y0",)]
    assert "top_3" not in table


@pytest.mark.parametrize("rows", [slice(None), [2, 0], [], slice(1, 2)])
def test_the_index_is_kept(rows):
    table = DIST._with_index(INDEX)[rows].to_frame()
    assert table.index.equals(INDEX[rows])
    assert table.index.name == "id"
    plain = DIST[rows].to_frame()
    assert plain.index.tolist() == list(range(len(table)))
    pd.testing.assert_frame_equal(table.reset_index(drop=True), plain)


def test_rows_that_share_a_name_stay_apart():
    table = DIST._with_index(pd.Index(["a", "a", "b"])).to_frame()
    assert table["predicted"].tolist() == [("cat",), (), ("dog",)]
    assert table.index.tolist() == ["a", "a", "b"]


def test_no_label_takes_the_place_of_a_column():
    names = [*(name for name in COLUMNS if "{" not in name), "top_1", "HP"]
    table = ls.IndependentLabels(np.full((2, len(names)), 0.3), names).to_frame()
    assert table.columns.is_unique
    for name in names:
        assert table[f"probability_{name}"].tolist() == pytest.approx([0.3, 0.3])
    fixed = {name for name in COLUMNS if "{" not in name} | {"top_1", "top_1_probability"}
    assert not any(name.startswith("probability_") for name in fixed)


def test_names_are_read_back():
    read = ls.read_labelsets(DIST.to_frame()["predicted"], ["cat", "dog"])
    np.testing.assert_array_equal(read.labelsets, DIST.mode())
    text = DIST._with_index(INDEX).to_frame(sep=";").to_csv()
    table = pd.read_csv(io.StringIO(text), index_col="id", keep_default_na=False)
    assert table["top_2"].tolist() == ["cat;dog", "cat", "cat;dog"]
    again = ls.read_labelsets(table["predicted"], ["cat", "dog"], sep=";")
    np.testing.assert_array_equal(again.labelsets, DIST.mode())
    assert again.index.equals(INDEX)


def test_tuples_become_lists_in_files():
    file = io.BytesIO()
    DIST.to_frame().to_parquet(file)
    assert [list(names) for names in pd.read_parquet(file)["predicted"]] == [["cat"], [], ["dog"]]


@pytest.mark.parametrize(
    ("sep", "names"),
    [
        (";", ["a;b", "c"]),
        (";", ["a", ";"]),
        (";;", ["a;", "c"]),
        (";", [" a", "c"]),
        (" ", ["a", "b c"]),
        (";", ["a", ""]),
    ],
)
def test_names_that_a_text_would_not_give_back_are_refused(sep, names):
    dist = ls.IndependentLabels([[0.9, 0.9]], names)
    message = rf"`sep`.*got sep={re.escape(repr(sep))} and the label"
    with pytest.raises(ls.InputError, match=message):
        dist.to_frame(sep=sep)
    assert dist.to_frame()["predicted"].iloc[0] == tuple(names)


def test_messages():
    for k in (-1, 2.0, None):
        with pytest.raises(ls.InputError, match=f"`k` must be a whole number >= 0, got {k}"):
            DIST.to_frame(k)
    for sep in ("", 3):
        message = rf"`sep` must separate label names, or be None.*got sep={sep!r}"
        with pytest.raises(ls.InputError, match=message):
            DIST.to_frame(sep=sep)
    with pytest.raises(ls.errors.UnknownNameError, match="Unknown candidate 'XY'"):
        DIST.to_frame(candidates="XY")
    for row, k in ((slice(2), 10), ("z", 10), (0, 0)):
        with pytest.raises(ls.InputError, match="`row`"):
            DIST.plot(row, k)
    with pytest.raises(IndexError, match="range"):
        DIST.plot(3)


def test_the_page_lists_the_columns():
    table = DIST.to_frame(k=1)
    candidates = [name for name in table if name in CANDIDATES]
    known = [name for name in COLUMNS if "{" not in name and name in table]
    assert known == ["predicted", "probability"]
    named = [name.format(1) for name in COLUMNS if name.startswith("top_{}")]
    named += [f"probability_{label}" for label in ("cat", "dog") if "probability_{}" in COLUMNS]
    assert list(table) == [*known, *candidates, *named]


def bars_of(ax):
    ax.figure.canvas.draw()
    names = [text.get_text() for text in ax.get_yticklabels()]
    return dict(zip(names, [bar.get_width() for bar in ax.patches], strict=True))


def test_a_chart_of_one_instance():
    ax = DIST.plot(2, k=2)
    assert bars_of(ax) == pytest.approx({"dog": 0.56, "cat, dog": 0.24, "all others together": 0.2})
    assert ax.get_title() == "Most probable labelsets of row 2"
    assert ax.get_xlabel() == "probability"
    assert [bool(bar.get_hatch()) for bar in ax.patches] == [False, False, True]
    assert [text.get_text() for text in ax.texts] == ["0.56", "0.24", "0.2"]
    assert ax.yaxis_inverted()  # the first is on top


def test_a_chart_of_all_labelsets_has_no_others():
    ax = DIST._with_index(INDEX).plot(1)
    assert list(bars_of(ax)) == ["(none)", "cat", "dog", "cat, dog"]
    assert ax.get_title() == "Most probable labelsets of x"


def test_a_chart_goes_where_it_is_told_to():
    ax = DIST.plot()
    other = mpl.figure.Figure().add_subplot()
    assert DIST.plot(ax=other) is other
    assert bars_of(other) == bars_of(ax)


def test_names_in_a_chart_are_text_of_bounded_length():
    names = [f"${j}^" + "x" * 35 for j in range(9)]
    ax = ls.IndependentLabels(np.full((1, 9), 0.9), names).plot(k=1)
    first = next(iter(bars_of(ax)))
    assert first.startswith(r"\$0^")
    assert first.count("\n") == 2
    assert first.endswith(" …")
    short = ls.IndependentLabels([[0.9] * 3], names[:3]).plot(k=1)
    assert not next(iter(bars_of(short))).endswith("…")
