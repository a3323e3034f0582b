"""`score_frame`: the same for any cut into batches and any kind of table, with a known schema."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scored_files import COLUMNS, LABELS, make_model, make_rows
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from labelsure.tables import score_frame, score_schema

N_ROWS = 40
TOLERANCE = 1e-9


class DrawnChains(ls.EnsembleOfClassifierChains):
    """Whatever it says follows from draws."""

    def predict_distribution(self, X):
        return super().predict_distribution(X).with_engine(engine="sampled", budget=50)


@pytest.fixture(scope="module")
def models():
    """A model that enumerates labelsets, one that draws some, one with a region and no names."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(150, 4)), columns=COLUMNS)
    Y = (X.to_numpy() @ rng.normal(size=(4, 14)) + rng.normal(size=(150, 14)) > 0.5).astype(int)
    chains = DrawnChains(LogisticRegression(), n_chains=2, random_state=0)
    drawn = ls.AccuracyAwareClassifier(chains, cv=0.5, random_state=0).fit(X, Y)
    few = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), region=0.9, cv=0.5, random_state=0)
    return {"exact": make_model(), "drawn": drawn, "region": few.fit(X, Y[:, :3])}


def assert_close(found, expected):
    assert list(found) == list(expected)
    assert found.index.equals(expected.index)
    for name in expected:
        if expected[name].dtype.kind == "f":
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=TOLERANCE)
        else:
            assert found[name].tolist() == expected[name].tolist()


@pytest.mark.parametrize("name", ["exact", "drawn", "region"])
@given(data=st.data())
def test_a_row_gets_the_same_in_any_batch(models, name, data):
    rows = make_rows(N_ROWS)
    whole = WHOLE.setdefault(name, score_frame(models[name], rows, id_column="id", open_cost=0.2))
    order = data.draw(st.permutations(range(N_ROWS)).map(list))
    cuts = sorted(data.draw(st.sets(st.integers(1, N_ROWS - 1), max_size=3)))
    parts = [
        score_frame(models[name], rows.iloc[some], id_column="id", open_cost=0.2)
        for some in np.split(order, cuts)
    ]
    assert_close(pd.concat(parts), whole.iloc[order])


WHOLE = {}


@pytest.mark.parametrize("name", ["exact", "drawn", "region"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"top": 0, "probabilities": False},
        {"top": 20, "open_cost": 0.2},
        {"id_column": "id"},
    ],
)
@pytest.mark.parametrize("n_rows", [0, 5])
def test_the_schema_is_known_beforehand(models, name, settings, n_rows):
    rows = make_rows(5)
    schema = score_schema(models[name], rows[:0], **settings)
    found = score_frame(models[name], pa.Table.from_pandas(rows[:n_rows]), **settings)
    assert found.schema.equals(schema)
    assert len(found) == n_rows
    frame = score_frame(models[name], rows[:n_rows], **settings)
    assert frame.dtypes.equals(score_frame(models[name], rows[:0], **settings).dtypes)
    assert list(frame) == schema.names
    assert pa.Table.from_pandas(frame, schema, preserve_index=False).equals(found)


@pytest.mark.parametrize("kind", ["int64", "uint64", "Int64", "UInt8", "object"])
def test_identifiers_keep_their_kind(kind):
    rows = make_rows(3).assign(id=pd.Series([1, 2, 3]).astype(kind))
    found = score_frame(make_model(), pa.Table.from_pandas(rows), id_column="id")
    assert found.schema.field("id").type == {"i": pa.int64(), "u": pa.uint64()}.get(
        rows["id"].dtype.kind, pa.int64() if kind == "object" else pa.string()
    )
    assert found["id"].to_pylist() == [1, 2, 3]
    assert score_schema(make_model(), rows).names[0] == "predicted"  # the model knows no ids


def test_tables_of_all_kinds():
    rows = make_rows(8)
    expected = score_frame(make_model(), rows, id_column="id")
    arrow = score_frame(make_model(), pa.Table.from_pandas(rows), id_column="id")
    polars = score_frame(make_model(), pl.from_pandas(rows), id_column="id")
    assert isinstance(arrow, pa.Table)
    assert isinstance(polars, pl.DataFrame)
    assert polars.to_arrow().cast(arrow.schema).equals(arrow)
    assert arrow["estimated_accuracy"].to_pylist() == expected["estimated_accuracy"].tolist()
    assert arrow["predicted"].to_pylist() == [list(names) for names in expected["predicted"]]
    assert set(expected.columns[-3:]) == {f"probability_{name}" for name in LABELS}
    with pytest.raises(ls.InputError, match="pandas"):
        score_frame(make_model(), rows.to_numpy())
