"""The forms in which users have labels and probabilities: each is read right or refused by name."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

import labelsure as ls
from labelsure.labelsets import to_names

NAMES = ["a", "b", "c"]
Y = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 1, 1]])
P = np.array([[0.9, 0.2, 0.6], [0.1, 0.7, 0.4]])


def frame(rows, dtype=None):
    table = pd.DataFrame(rows, columns=NAMES)
    return table if dtype is None else table.astype(dtype)


LABELSETS = {
    **{dtype: Y.astype(dtype) for dtype in ("bool", "int8", "uint8", "float16", "object")},
    **{
        f"frame of {dtype}": frame(Y, dtype)
        for dtype in ("bool", "Int64", "boolean", "Float64", "object", "category", "int64[pyarrow]")
    },
    "frame of sparse columns": frame(Y, pd.SparseDtype(int, 0)),
    "frame of several types": frame(Y).astype({"a": bool, "b": float}),
    "arrow": pa.table(dict(zip(NAMES, Y.T, strict=True))),
    **{
        layout: getattr(sp, layout)(Y)
        for layout in (
            "csr_array", "csc_array", "coo_array", "lil_array", "dok_array", "bsr_array",
            "dia_array", "dok_matrix",
        )
    },
    "list of arrays": list(Y),
    "generator": (row for row in to_names(Y, NAMES)),
    "series of sets": pd.Series([set(row) for row in to_names(Y, NAMES)]),
}  # fmt: skip


@pytest.mark.parametrize("form", LABELSETS)
def test_labelsets_of_every_form_are_read(form):
    assert (np.asarray(ls.read_labelsets(LABELSETS[form])) == Y).all()


MISSING = frame(Y).astype(object)
MISSING.loc[1, "b"] = None

REFUSED = {
    "texts": (Y.astype(str), "texts that are flags: '0', '1'"),
    "lists of texts": (Y.astype(str).tolist(), "texts that are flags"),
    "yes and no": (np.where(Y, "yes", "no"), "texts that are flags: 'no', 'yes'"),
    "frame of texts": (frame(Y, str), "got '1' in row 0, column 0"),
    "frame of strings": (frame(Y, "string"), "got '1' in row 0, column 0"),
    "none": (np.where(Y, None, 0), "got nan in row 0, column 0"),
    "missing": (MISSING, "got nan in row 1 for 'b'"),
    "dict": (dict(zip(NAMES, Y.T, strict=True)), "got a dict. Make a table"),
    "records": (frame(Y).to_dict("records"), "got a list of dicts. Make a table"),
    "missing name": ([["a", None], ["b"]], "a missing one in row 0"),
    "name that is not a number": ([["a"], ["b", np.nan]], "a missing one in row 1"),
    "name of pandas that is missing": ([["a"], ["b", pd.NA]], "a missing one in row 1"),
    "nothing": (None, "got dtype object"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_labelsets_that_have_no_clear_meaning_are_refused(form):
    given, telling = REFUSED[form]
    with pytest.raises(ls.InputError, match=telling):
        ls.read_labelsets(given)
    if given is not None:
        with pytest.raises(ls.InputError, match=telling):
            ls.BinaryRelevance().fit(np.zeros((len(Y), 1)), given)


def test_names_that_look_like_flags_are_names_where_none_is_listed_twice():
    assert ls.read_labelsets([["0"], ["1", "0"]]).label_names == ("0", "1")


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]", "object", "category", "float32"])
def test_probabilities_of_every_type_are_read(dtype):
    dist = ls.as_distribution(frame(P, dtype))
    np.testing.assert_allclose(dist.marginals(), P, atol=1e-7)
    model = ls.PrecomputedProbabilities().fit(frame(P, dtype), [[1, 0, 1], [0, 1, 0]])
    np.testing.assert_allclose(model.predict_proba(frame(P, dtype)), P, atol=1e-7)


@pytest.mark.parametrize(
    ("ask", "telling"),
    [
        (lambda: ls.as_distribution(P, label_names=set(NAMES)), "a set, which has no order"),
        (lambda: ls.as_distribution(frame(P), label_names=set(NAMES)), "a set, which"),
        (lambda: ls.read_labelsets([["a"]], label_names={"a", "b"}), "a set, which"),
        (lambda: ls.as_distribution(P, label_names=["a", None, "c"]), "name every label"),
        (lambda: ls.as_distribution(P, label_names="abc"), "list of names, got 'abc'"),
        (lambda: ls.as_distribution(dict(zip(NAMES, P.T, strict=True))), "got a dict"),
        (lambda: ls.as_distribution(P.astype(str)), "array of real numbers"),
        (lambda: ls.PrecomputedProbabilities(NAMES).fit(P, Y[:2]), "Unknown kind"),
        (
            lambda: ls.PrecomputedProbabilities(floor="x").fit([{"a": 0.1}] * 2, [[1], [0]]),
            "`floor` must be a number",
        ),
    ],
)
def test_settings_that_have_no_clear_meaning_are_refused(ask, telling):
    with pytest.raises(ls.InputError, match=telling):
        ask()
