"""Tables as features: what each column is taken for, and what becomes of its values."""

import datetime
import re
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

import labelsure as ls
from labelsure.tables.files import _choose_columns
from labelsure.tables.inputs import ColumnRole, infer_roles
from labelsure.tables.values import read_numbers

N = 40
RNG = np.random.default_rng(0)
WORDS = ["wind", "rain", "snow", "sun", "fog", "hail", "ice", "heat"]


def role_of(values, **known):
    frame = pd.DataFrame({"column": pd.Series(values), "other": range(len(values))})
    return infer_roles(frame, **known)[0]


@pytest.mark.parametrize(
    ("values", "role", "note"),
    [
        (RNG.normal(size=N), "number", "scaled; missing values imputed by the median"),
        ([str(v) for v in RNG.normal(size=N)], "number", "scaled"),
        (["1", "2", "", "NA", "n/a", "-nan", "?", "null", "3"] * 5, "number", "scaled"),
        ([1, 0] * 20, "number", "scaled"),
        (pd.array([1, None, 3] * 10, "Int64"), "number", "scaled"),
        ([True, False] * 20, "number", "scaled"),
        (["true", "false"] * 20, "category", "one column for each value"),
        (["red", "green", ""] * 10, "category", "one column for each value"),
        (["New York", "Los Angeles", "Rome"] * 10, "category", "one column for each value"),
        ([f"{WORDS[i % 8]} {i}" for i in range(N)], "text", "weights of its words (TF-IDF)"),
        (["so many words in a row", "and again that many"] * 20, "text", "weights of its words"),
        ([f"t{i}" for i in range(N)], "left out", "40 different values in 40 rows, as those of an"),
        ([f"t{i}" for i in range(21)] * 1 + ["t0"] * 19, "left out", "21 different values in 40"),
        ([f"t{i % 20}" for i in range(40)], "category", "one column for each value"),
        ([f"t{i}" for i in range(19)], "category", "one column for each value"),
        (range(N), "left out", "it counts the rows"),
        (range(1, N + 1), "left out", "it counts the rows"),
        (range(2, N + 2), "number", "scaled"),
        (range(19), "number", "scaled"),
        ([0, *range(39)], "number", "scaled"),
        (["", None] * 20, "left out", "empty"),
        (["x"] * N, "left out", "constant"),
        ([3.5] * N, "left out", "constant"),
        (["2024-01-05", "2024-02-07T12:30"] * 20, "left out", "dates are no feature; make numbers"),
        (["5.1.2024", "31/12/23"] * 20, "left out", "dates are no feature"),
        (pd.to_datetime(["2024-01-05", "2024-01-06"] * 20), "left out", "dates are no feature"),
        (pd.to_timedelta([60, 90] * 20, unit="s"), "left out", "times are no feature"),
        ([datetime.time(8), datetime.time(9, 30)] * 20, "left out", "times are no feature"),
        ([["a"], []] * 20, "left out", "lists are no feature"),
        ([{"a": 1}, None] * 20, "left out", "lists are no feature"),
    ],
)
def test_what_a_column_is_taken_for(values, role, note):
    found = role_of(values)
    assert found.role == role
    assert found.note.startswith(note)


def test_what_is_said_of_a_column_holds():
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": ["x", "y"], "d": [5, 6], "e": [0, 1]})
    roles = infer_roles(
        frame, id_column="a", label_columns=["e"], left_out=["b"], overrides={"d": "category"}
    )
    assert {role.name: role.role for role in roles} == {
        "a": "id", "b": "left out", "c": "category", "d": "category", "e": "label"
    }  # fmt: skip
    assert roles[1].note == "as asked for"
    assert asdict(roles[0]) == {"name": "a", "role": "id", "note": "names the rows"}
    with pytest.raises(
        ls.errors.UnknownNameError, match=re.escape("Unknown role of column 'd': 'numbr'")
    ):
        infer_roles(frame, overrides={"d": "numbr"})
    with pytest.raises(ls.InputError, match="'a' is given as id and as number"):
        infer_roles(frame, id_column="a", overrides={"a": "number"})
    with pytest.raises(ls.errors.UnknownNameError, match="Unknown column 'z'"):
        infer_roles(frame, overrides={"z": "number"})


class CountedName(str):
    """Column name that counts how often it is hashed or made a text."""

    n_uses = 0

    def __hash__(self):
        CountedName.n_uses += 1
        return super().__hash__()

    def __str__(self):
        CountedName.n_uses += 1
        return "".join(self)


@pytest.mark.parametrize("what", ["roles", "columns"])
def test_time_is_linear_in_the_number_of_columns(what):
    names = [CountedName(f"c{j}") for j in range(100)]
    frame = pd.DataFrame([[0] * len(names)] * 2, columns=pd.Index(names, dtype=object))
    CountedName.n_uses = 0
    if what == "roles":
        infer_roles(frame, label_columns=names)
    else:
        assert _choose_columns(names, names) == names
    assert CountedName.n_uses <= 10 * len(names)


TABLE = pd.DataFrame(
    {
        "size": ["1", "", "5", "9"],
        "colour": ["red", "blue", "", "red"],
        "note": ["a large thing", "the small one", "", "another large one"],
    }
)
ROLES = [
    ColumnRole.of("size", "number"),
    ColumnRole.of("colour", "category"),
    ColumnRole.of("note", "text"),
]


def test_numbers_are_scaled_and_the_median_stands_in():
    columns = ls.tables.TableColumns(ROLES[:1]).fit(TABLE)
    values = np.array([1, 5, 5, 9.0])
    expected = (values - values.mean()) / values.std()
    np.testing.assert_allclose(columns.transform(TABLE)[:, 0], expected)
    np.testing.assert_allclose(columns.medians_, [5])
    new = pd.DataFrame({"size": [None, 7.0]})
    np.testing.assert_allclose(columns.transform(new)[:, 0], [0, 2 / values.std()])


def test_categories_have_a_column_each_and_unknown_ones_none():
    columns = ls.tables.TableColumns(ROLES[:2]).fit(TABLE)
    assert list(columns.get_feature_names_out()) == ["size", "colour_", "colour_blue", "colour_red"]
    found = columns.transform(pd.DataFrame({"colour": ["blue", "pink", None], "size": ["5"] * 3}))
    assert isinstance(found, np.ndarray)
    assert found[:, 1:].tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_rare_categories_share_a_column(monkeypatch):
    monkeypatch.setattr("labelsure.tables.inputs.MAX_CATEGORIES", 3)
    frame = pd.DataFrame({"c": ["a"] * 9 + ["b"] * 8 + ["x", "y", "z"]})
    columns = ls.tables.TableColumns([ColumnRole.of("c", "category")]).fit(frame)
    found = columns.transform(pd.DataFrame({"c": ["a", "b", "x", "z", "new"]}))
    assert found.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]


def test_texts_are_sparse_weights_of_words():
    columns = ls.tables.TableColumns(ROLES).fit(TABLE)
    found = columns.transform(TABLE)
    assert sparse.issparse(found)
    names = list(columns.get_feature_names_out())
    assert found[2].toarray()[0][names.index("large") :].sum() == 0
    large = names.index("large")
    assert found[0].toarray()[0][large] > 0
    assert found[1].toarray()[0][large] == 0
    # Columns may be in another order, and there may be more.
    mixed = TABLE[["note", "size", "colour"]].assign(other=1)
    np.testing.assert_array_equal(columns.transform(mixed).toarray(), found.toarray())
    converted = columns.convert(mixed)
    assert list(converted.columns) == ["size", "colour", "note"]
    np.testing.assert_array_equal(columns.transform(converted).toarray(), found.toarray())


@pytest.mark.parametrize("values", [["1.5", "n.a.", *map(str, range(28))], ["1,5", "2,25"] * 15])
def test_a_column_that_is_nearly_a_number_is_named(values):
    with pytest.warns(UserWarning, match="Column 'price' is not used as a number: row [01] "):
        infer_roles(pd.DataFrame({"price": values}))
    codes = pd.DataFrame({"code": ["1", "2", "3a", "4b"] * 8})
    assert infer_roles(codes)[0].role == "category"


def test_roles_are_inferred_without_any_and_are_said():
    frame = pd.DataFrame({"x": RNG.normal(size=N), "i": range(N), "c": ["a", "b"] * 20})
    columns = ls.tables.TableColumns().fit(frame)
    assert [role["role"] for role in columns.describe_columns()] == [
        "number",
        "left out",
        "category",
    ]
    assert "i: left out (it counts the rows)" in str(columns)
    assert str(ls.tables.TableColumns()) == "TableColumns()"
    assert clone(columns).roles is None
    assert columns.n_features_in_ == 2
    assert columns.id_column is None
    tags = get_tags(columns).input_tags
    assert (tags.allow_nan, tags.string) == (True, True)
    named = ls.tables.TableColumns([*ROLES, ColumnRole.of("key", "id")])
    assert named.fit(TABLE).id_column == "key"


def test_every_spelling_of_numbers_and_of_what_is_missing():
    values = [" 1.5", "2e3 ", "-4", "+7", "007", ".5", "NA", " ", None, np.nan, 3, "1_000", "1,5"]
    values += ["0x10", "inf", "-Infinity", "nan", "True", "five"]
    numbers, is_bad = read_numbers(pd.Series(values, dtype=object))
    nan = np.nan
    np.testing.assert_array_equal(
        np.where(is_bad, nan, numbers),
        [1.5, 2000, -4, 7, 7, 0.5, nan, nan, nan, nan, 3, *[nan] * 8],
    )
    assert [values[i] for i in np.flatnonzero(is_bad)] == [
        "1_000", "1,5", "0x10", "inf", "-Infinity", "True", "five"
    ]  # fmt: skip
    texts = pd.Series(["" if value is None else str(value) for value in values], dtype="str")
    np.testing.assert_array_equal(read_numbers(texts)[1], is_bad)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.booleans())
def test_numbers_have_the_same_bits_whatever_stands_beside_them(numbers, short):
    spelled = [f"{number:.6g}" if short else repr(number) for number in numbers]
    quick, _ = read_numbers(pd.Series(spelled, dtype="str"))
    one_by_one, _ = read_numbers(pd.Series([*spelled, " NA "], dtype="str"))
    assert quick.tolist() == one_by_one[:-1].tolist() == [float(text) for text in spelled]
    assert np.isnan(one_by_one[-1])


def test_a_fold_without_any_number():
    columns = ls.tables.TableColumns(ROLES[:1]).fit(TABLE.iloc[1:2])
    assert columns.transform(TABLE.iloc[1:3]).tolist() == [[0], [5]]


def test_bad_rows_are_known_by_place():
    frame = TABLE.assign(size=["1", "large", "inf", "2"], more=["x"] * 4, index=[7, 8, 9, 10])
    frame = frame.set_index("index")
    columns = ls.tables.TableColumns(ROLES[:2]).fit(TABLE)
    with pytest.raises(ls.errors.RowsError) as caught:
        columns.convert(frame, "'t.csv'")
    assert caught.value.reasons == {
        8: "'size' must be a finite number, got 'large'",
        9: "'size' must be a finite number, got 'inf'",
    }
    assert str(caught.value) == (
        "Row 8 of 't.csv' (rows count from 0) cannot be used: 'size' must be a finite number, got "
        "'large' (1 more such row here). Fix or drop it."
    )
    with pytest.raises(ls.errors.RowsError, match=re.escape("got 'inf'. Fix or drop it.")):
        columns.convert(frame.drop(index=8))
    assert len(columns.convert(frame.drop(index=[8, 9]))) == 2


def test_an_error_of_rows_can_be_sent_to_another_process():
    import pickle

    error = pickle.loads(pickle.dumps(ls.errors.RowsError({3: "why", 4: "so", 5: "no"}, "'t'")))
    assert error.reasons == {3: "why", 4: "so", 5: "no"}
    assert "cannot be used: why (2 more such rows here)" in str(error)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            TABLE[["size"]],
            "The columns of the table must include those that the model was fitted to, in any "
            "order; missing are 'colour', 'note'. Add or rename columns.",
        ),
        (TABLE.to_numpy(), "the table must be a DataFrame, whose columns are known by name, got a"),
        (TABLE.set_axis(["a", "a", "b"], axis=1), "names of their own, 'a' is there twice."),
    ],
)
def test_tables_that_do_not_fit(frame, message):
    columns = ls.tables.TableColumns(ROLES).fit(TABLE)
    with pytest.raises(ls.InputError, match=re.escape(message)):
        columns.transform(frame)


def test_nothing_to_learn_from():
    message = "must have at least one column to learn from, got 'x': empty."
    with pytest.raises(ls.InputError, match=message):
        ls.tables.TableColumns().fit(pd.DataFrame({"x": [""] * 5}))
    message = "Text columns ('note') must have words of two or more letters, but: empty vocabulary"
    with pytest.raises(ls.InputError, match=re.escape(message)):
        ls.tables.TableColumns(ROLES[2:]).fit(pd.DataFrame({"note": ["1 2 3 4"]}))
    many = ls.tables.TableColumns([ColumnRole.of(f"x{i}", "number") for i in range(8)])
    with pytest.raises(ls.InputError, match="rename"):
        many.fit(TABLE)
