"""`train_model`: a classifier with its accuracy estimator and policy, from a table in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.pipeline import Pipeline

from labelsure._runtime.typing import AnyPath, Labelsets
from labelsure.errors import DataError, InputError, unknown_name
from labelsure.tables.datasets._column_roles import ColumnChoice, read_index, read_labels
from labelsure.tables.file_models._table_classifiers import CLASSIFIERS
from labelsure.tables.input_columns._inferred_roles import infer_roles
from labelsure.tables.input_columns._table_columns import TableColumns
from labelsure.tables.table_files._units import read_table

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.model._aware_classifier import AccuracyAwareClassifier


def train_model(
    data: AnyPath | Sequence[AnyPath] | pd.DataFrame,
    *,
    labels: Any = None,
    label_column: str | None = None,
    sep: str | None = None,
    id_column: str | None = None,
    drop: Any = (),
    roles: Mapping[str, str] | None = None,
    classifier: str = "ecc",
    metric: str = "jaccard",
    target: float | None = None,
    share: float | None = None,
    region: float | None = None,
    cv: int | float | None = None,
    confidence: float = 0.95,
    random_state: int | None = 0,
) -> AccuracyAwareClassifier:
    r"""Train a classifier on a table whose columns are numbers, categories and texts.

    Parameters
    ----------
    data
        A file or folder that `labelsure.tables.table_files.read_table` reads, or a DataFrame.
    labels
        The columns of zeros and ones that are labels: names or patterns, in a list or with commas.
    label_column
        Instead: the column that holds the names of each row's labels.
    sep
        What stands between the names in a text of that column; None where it holds lists.
    id_column
        The column that names the rows; it is no feature.
    drop
        Names or patterns of columns that must not be learned from.
    roles
        Columns that are "number", "category" or "text" whatever they look like, by name.
    classifier
        "ecc", "br", "trellis", "pcc" or "forest".
    metric, target, share, region, confidence
        As of `AccuracyAwareClassifier`.
    cv
        As there; None holds out the usual share.
    random_state
        Seed of the classifier, the folds and the splits.

    Returns
    -------
    A fitted `AccuracyAwareClassifier` around a pipeline of `TableColumns` and the classifier.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> rows = "".join(f"{i % 9},{'red' if i % 2 else 'blue'},{i % 9 > 4:d},{i % 2}\n"
    ...                for i in range(90))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("size,colour,large,dark\n" + rows)
    ...     model = train_model(path, labels="large,dark", classifier="br")
    >>> model.label_names_
    ('large', 'dark')
    >>> print(model.estimator_[0])
    size: number (scaled; the median where it is missing)
    colour: category (one column for each value; others than in training count as none of them)
    large: label (to be predicted)
    dark: label (to be predicted)
    """
    from labelsure.model._aware_classifier import AccuracyAwareClassifier

    if classifier not in CLASSIFIERS:
        raise unknown_name("classifier", classifier, CLASSIFIERS)
    if (labels is None) == (label_column is None):
        raise InputError(
            "Which columns are labels must be said in one of two ways: `labels` for columns of "
            "zeros and ones, or `label_column` for a column with the names of labels."
        )
    frame, where = _load(data)
    choice = ColumnChoice.read(labels or [label_column], id_column, drop, sep)
    assigned = choice.assign(list(frame.columns))
    if id_column is not None:
        read_index(
            frame[id_column], where, "the id"
        )  # ids that are missing or there twice are refused
    Y = _read_label_frame(frame[assigned.labels], sep, label_column is not None, where)
    known = {*assigned.labels, *assigned.features, id_column}
    found = infer_roles(
        frame,
        id_column=id_column,
        label_columns=assigned.labels,
        left_out=[name for name in frame.columns if name not in known],
        given=roles,
    )
    pipeline = Pipeline(
        [("columns", TableColumns(found)), ("classifier", CLASSIFIERS[classifier](random_state))]
    )
    model = AccuracyAwareClassifier(
        pipeline,
        metric,
        target,
        share=share,
        confidence=confidence,
        **({} if cv is None else {"cv": cv}),
        region=region,
        random_state=random_state,
    )
    return model.fit(frame.reset_index(drop=True), Y)


def _load(data: Any) -> tuple[pd.DataFrame, str]:
    """Return a table whose columns have texts for names, and what messages call it."""
    where = "the table"
    if not hasattr(data, "iloc"):
        given = [data] if isinstance(data, (str, PathLike)) else list(data)
        data, where = read_table(given), repr(Path(given[0]).name)
    return data.set_axis([str(name) for name in data.columns], axis=1), where


def _read_label_frame(
    columns: pd.DataFrame, sep: str | None, holds_names: bool, where: str
) -> pd.DataFrame:
    """Return the labels as zeros and ones, each of which must be both somewhere."""
    import pandas as pd

    if holds_names and sep is None and not columns.iloc[:, 0].map(lambda v: not _is_text(v)).all():
        raise InputError(
            f"Column {columns.columns[0]!r} of {where} holds text: say what stands between the "
            "names of labels with `sep`, e.g. ';'."
        )
    if not holds_names:
        columns = columns.replace("", pd.NA)
    Y, names = read_labels(columns, sep, where)
    check_labels_vary(Y, names, where)
    return pd.DataFrame(Y, columns=list(names))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def check_labels_vary(Y: Labelsets, names: Sequence[str], where: str) -> None:
    """Refuse a label that is the same in every row, of which nothing can be learned.

    Parameters
    ----------
    Y
        (n, L) zeros and ones.
    names
        Of the labels.
    where
        What the table is, for messages.
    """
    for name, column in zip(names, Y.T, strict=True):
        if column.min() == column.max():
            raise DataError(
                f"Each label in {where} must be true in some rows and false in others, {name!r} is "
                f"{column[0]} in all {len(column)} rows. Leave that label out."
            )
