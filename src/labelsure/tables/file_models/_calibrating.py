"""`calibrate_model`: what another system's predictions are worth, from these and the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from labelsure._runtime.typing import AnyPath, LabelNames
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.errors import InputError
from labelsure.labelsets.index import list_some
from labelsure.tables.datasets._column_roles import ColumnChoice
from labelsure.tables.file_models._truth_tables import join_truth, names_in_truth, read_truth
from labelsure.tables.input_columns._listed_predictions import all_listed_labels
from labelsure.tables.input_columns._prediction_columns import PredictionColumns
from labelsure.tables.input_columns._prediction_layouts import (
    ANSWERS,
    CELLS,
    LABELS,
    LISTED,
    LISTS,
    SCORES,
    Layout,
    check_lists_labels,
    find_layout,
)
from labelsure.tables.table_files._units import read_table

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.model._aware_classifier import AccuracyAwareClassifier

ID = "id"
"""The column by which two tables are joined if both have it and nothing else is said."""


def calibrate_model(
    predictions: AnyPath | pd.DataFrame,
    truth: AnyPath | pd.DataFrame,
    *,
    labels: Any = None,
    label_column: str | None = None,
    sep: str | None = None,
    id_column: str | None = None,
    logits: bool = False,
    sparse: bool = False,
    floor: float | None = None,
    metric: str = "jaccard",
    target: float | None = None,
    share: float | None = None,
    region: float | None = None,
    confidence: float = 0.95,
    random_state: int | None = 0,
) -> AccuracyAwareClassifier:
    r"""Make a model of another system's predictions, from some whose truth is known.

    Nothing is trained: all rows are new to the other system, so that a target is guaranteed.

    Parameters
    ----------
    predictions
        A file that `labelsure.tables.table_files.read_table` reads, or a DataFrame: a column of
        scores for each label; a cell with all scores, as pairs of label and score or in the order
        of the labels; a list of answers, which are votes; or the rows of a sparse matrix. See
        `PredictionColumns`.
    truth
        A file or a DataFrame: a column of zeros and ones for each label, or one column with the
        names of each row's labels, as lists or as text; beside sparse predictions also the rows of
        a sparse matrix, or numbers of labels from 0 on where these have no names.
    labels
        The labels, in a list or with commas. None takes those that the tables name. They name the
        columns of an array.
    label_column
        The column of the truth that holds names of labels; None where it is the only one.
    sep
        What stands between the names in a text of it.
    id_column
        The column by which rows are joined; None for "id" where both have it, and otherwise rows
        are taken in their order.
    logits
        Whether scores are logits instead of probabilities.
    sparse
        Whether rows with pairs of label and score list some of very many labels only, so that the
        others have a probability near 0. A sparse matrix says so by itself.
    floor
        How probable each label is that such a row does not list; None means 2**-24.
        `labelsure.suggest_floor` finds one from labelled instances.
    metric, target, share, region, confidence, random_state
        As of `AccuracyAwareClassifier`.

    Returns
    -------
    A fitted `AccuracyAwareClassifier`, whose X is such a table of predictions.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"cat": [0.9, 0.2, 0.7, 0.1] * 20, "dog": [0.1, 0.8, 0.6, 0.3] * 20})
    >>> truth = pd.DataFrame({"labels": ["cat", "dog", "cat;dog", ""] * 20})
    >>> model = calibrate_model(scores, truth, sep=";")
    >>> model.predict(scores[:2])
    array([[1, 0],
           [0, 1]])
    """
    from labelsure.model._aware_classifier import AccuracyAwareClassifier

    ColumnChoice.read(labels, id_column, (), sep)  # checks the types of these
    names = _split_names(labels)
    said, known = _load(predictions), _load(truth)
    if id_column is None and all(ID in table.columns for table in (said, known)):
        id_column = ID
    layout = find_layout(said, id_column)
    is_sparse = sparse or layout.name == LISTED
    if is_sparse:
        check_lists_labels(layout.name)
    else:
        _check_all_listed(said, layout, names, floor, _describe(predictions, "the predictions"))
    of_truth = {"label_column": label_column, "sep": sep, "id_column": id_column}
    if is_sparse and names is None and layout.n_labels is None:
        where = _describe(truth, "the truth")
        names = sorted({*_listed_labels(said, layout), *names_in_truth(known, where, **of_truth)})
    found = read_truth(
        known,
        _describe(truth, "the truth"),
        labels=names,
        n_labels=layout.n_labels,
        predicted=layout,
        cells=None if layout.column is None else said[layout.column],
        sparse=is_sparse,
        **of_truth,
    )
    where = _describe(predictions, "the predictions")
    said, Y = join_truth(said, found, id_column, where)
    labels = found.label_names
    n_labels = int(found.labelsets.shape[1])
    pipeline = _make_pipeline(labels, n_labels, layout, id_column, logits, is_sparse, floor)
    # Which names the rows that cannot be read, and the file.
    pipeline[0].fit(said).convert(said, where)
    model = AccuracyAwareClassifier(
        FrozenEstimator(pipeline.fit(said, Y)),
        metric,
        target,
        share=share,
        confidence=confidence,
        region=region,
        random_state=random_state,
    )
    return model.fit(said, Y)


def _make_pipeline(
    label_names: LabelNames,
    n_labels: int,
    layout: Layout,
    id_column: str | None,
    logits: bool,
    is_sparse: bool,
    floor: float | None,
) -> Pipeline:
    """Return what makes distributions of a table of predictions."""
    columns = PredictionColumns(
        label_names or n_labels,
        layout.name,
        layout.column,
        id_column=id_column,
        logits=logits,
        sparse=is_sparse and layout.name != LISTED,
    )
    kind = "votes" if layout.name == ANSWERS else "logit" if logits else "marginal"
    predictions = PrecomputedProbabilities(kind, label_names if is_sparse else None, floor)
    return Pipeline([("columns", columns), ("predictions", predictions)])


def _check_all_listed(
    said: pd.DataFrame, layout: Layout, names: Any, floor: float | None, where: str
) -> None:
    """Refuse rows that list different labels, where nobody has said that they list some only."""
    if floor is not None:
        raise InputError(
            "`floor` is about labels that are not listed, these predictions list all. "
            "Leave it out, or say that rows list some labels by `sparse`."
        )
    if layout.label_names is None or names is not None or layout.name not in (CELLS, LISTS):
        return
    first = set(layout.label_names)
    others = [label for label in _listed_labels(said, layout) if label not in first]
    if others:
        raise InputError(
            f"The rows of {where} list different labels: {list_some(others)} are not in row 0. If "
            "rows list some labels of many, say so by `sparse`; otherwise let the "
            "other system print the scores of all labels, e.g. by top_k=None."
        )


def _listed_labels(said: pd.DataFrame, layout: Layout) -> list[str]:
    cells = [LABELS, SCORES] if layout.name == LISTS else [str(layout.column)]
    return all_listed_labels([said[name] for name in cells])


def _split_names(labels: Any) -> list[str] | None:
    if labels is None:
        return None
    parts = labels.split(",") if isinstance(labels, str) else labels
    return [str(part).strip() for part in parts]


def _load(table: Any) -> pd.DataFrame:
    return table if hasattr(table, "iloc") else read_table(table)


def _describe(table: Any, otherwise: str) -> str:
    return otherwise if hasattr(table, "iloc") else repr(Path(table).name)
