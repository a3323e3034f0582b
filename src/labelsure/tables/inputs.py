"""`InputTable`: from rows of a file to what a model takes, and the names of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from labelsure.classifiers._adapters import first_step
from labelsure.classifiers._probability_layouts import PrecomputedProbabilities
from labelsure.errors import InputError, RowsError
from labelsure.labelsets.answers import OddAnswers
from labelsure.tables.features import ColumnRole, TableColumns, refuse_missing_columns
from labelsure.tables.predictions import PredictionColumns

if TYPE_CHECKING:
    import pandas as pd

TEXT = "text"


class InputTable:
    """What a model needs of a table: which columns, and how rows become instances.

    Parameters
    ----------
    model
        A fitted `AccuracyAwareClassifier`. One of `train_model` or `calibrate_model` knows its
        columns; another one that was fitted to a DataFrame of numbers knows their names; one whose
        pipeline begins with a vectoriser takes the column "text", or the only one.
    id_column
        The column that names the rows; None for the one that the model was made with, if the table
        has it.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelsure import AccuracyAwareClassifier, BinaryRelevance
    >>> from labelsure.tables import TableColumns
    >>> from sklearn.pipeline import make_pipeline
    >>> frame = pd.DataFrame({"id": range(20), "wind": range(20)}, dtype=str)
    >>> Y = pd.DataFrame({"storm": [0] * 10 + [1] * 10, "calm": [1] * 8 + [0] * 12})
    >>> roles = [ColumnRole.of("id", "id"), ColumnRole.of("wind", "number")]
    >>> pipeline = make_pipeline(TableColumns(roles), BinaryRelevance())
    >>> model = AccuracyAwareClassifier(pipeline, cv=2, random_state=0).fit(frame, Y)
    >>> X, ids = InputTable(model).read(pd.DataFrame({"wind": ["3"], "id": ["a7"]}))
    >>> model.predict(X), list(ids)
    (array([[0, 1]]), ['a7'])
    """

    def __init__(self, model: Any, id_column: str | None = None) -> None:
        self._reader = _find_reader(model, id_column)
        self._id_is_wanted = id_column is not None
        self.id_column = self._reader.id_column if id_column is None else id_column

    @property
    def is_sparse(self) -> bool:
        """Whether rows list some of very many labels, so that labelsets are sparse."""
        return bool(getattr(self._reader, "is_sparse", False))

    @property
    def columns(self) -> list[str] | None:
        """The columns that have to be read of a file; None for all of them."""
        needed = self._reader.columns_read
        if not needed:
            return None
        return [*dict.fromkeys((*needed, *([] if self.id_column is None else [self.id_column])))]

    def read(self, frame: pd.DataFrame, where: str = "the table") -> tuple[Any, pd.Index | None]:
        """Return what the model takes for these rows, with their index, and their names.

        Raises a `RowsError`, whose `reasons` are by row, where some rows cannot be used. The others
        can be read without them: ``read(frame.drop(index=list(error.reasons)))``.
        """
        import pandas as pd

        if self._id_is_wanted:
            refuse_missing_columns([str(self.id_column)], [str(c) for c in frame.columns], where)
        X = self._reader.convert(frame, where)
        has_id = self.id_column is not None and self.id_column in frame.columns
        return X, pd.Index(frame[self.id_column]) if has_id else None

    def find_unseen(self, X: Any) -> dict[str, str]:
        """Return a sentence for each category most of whose values training did not have."""
        return self._reader.find_unseen(X) if isinstance(self._reader, TableColumns) else {}

    def count_odd_answers(self, frame: pd.DataFrame) -> OddAnswers:
        """Return what is left out of answers that are votes."""
        is_said = isinstance(self._reader, PredictionColumns)
        return self._reader.count_odd_answers(frame) if is_said else OddAnswers()


class _TextColumn:
    """The texts of a model that begins with a vectoriser: the column "text", or the only one."""

    id_column = None
    columns_read = ()

    def __init__(self, id_column: str | None) -> None:
        self._id_column = id_column

    def convert(self, frame: pd.DataFrame, where: str) -> Any:
        """Return the texts, with the index of the rows."""
        names = [name for name in frame.columns if name != self._id_column]
        chosen = [name for name in names if name == TEXT] or names
        if len(chosen) != 1:
            raise InputError(
                f"{where} must have one column of texts, or one called {TEXT!r}, for a model that "
                f"was fitted to texts, got {', '.join(map(repr, names))}. Rename it, or say which "
                "column names the rows."
            )
        texts = frame[chosen[0]]
        if (is_bad := texts.isna()).any():
            raise RowsError(dict.fromkeys(frame.index[is_bad], "the text is missing"), where)
        return texts.astype(str)


class _NumberColumns:
    """The columns of a model that was fitted to numbers: by name, or an array by position."""

    id_column = None

    def __init__(self, model: Any) -> None:
        self.columns_read = [str(name) for name in getattr(model, "feature_names_in_", ())]
        self._n_features = getattr(model, "n_features_in_", None)
        self._allows_missing = get_tags(model.estimator_).input_tags.allow_nan
        self._columns = TableColumns()
        self._columns.roles_ = [ColumnRole.of(name, "number") for name in self.columns_read]

    def convert(self, frame: pd.DataFrame, where: str) -> Any:
        """Return the numbers, a DataFrame if the model knows names."""
        numbers = frame
        if self.columns_read:
            numbers = self._columns.convert(frame, where)
        elif [*frame.columns] != [*range(self._n_features or frame.shape[1])]:
            raise InputError(
                f"{where} must be an array of {self._n_features} columns without names, as in "
                f"training, to be compared with it, got {frame.shape[1]} columns. Save the table "
                "as .npy, or fit the model to a DataFrame."
            )
        is_bad = numbers.isna().any(axis=1)
        if is_bad.any() and not self._allows_missing:
            reason = "a number is missing, which the model does not allow"
            raise RowsError(dict.fromkeys(numbers.index[is_bad], reason), where)
        return numbers if self.columns_read else numbers.to_numpy()


def _find_reader(model: Any, id_column: str | None) -> Any:
    """Return what knows the columns of a model: its first step, or what follows from its names."""
    first = first_step(model.estimator_)
    if isinstance(first, (TableColumns, PredictionColumns)):
        return first
    if isinstance(first, PrecomputedProbabilities):
        return _read_precomputed(first)
    tags = get_tags(first).input_tags if isinstance(first, BaseEstimator) else None
    if tags is not None and tags.string and not tags.two_d_array:
        return _TextColumn(id_column)
    return _NumberColumns(model)


def _read_precomputed(model: PrecomputedProbabilities) -> PredictionColumns:
    if model.kind not in ("marginal", "logit"):
        raise InputError(
            f"A model of precomputed predictions of kind {model.kind!r} does not say how they "
            "stand in a file. Make it by `labelsure calibrate`."
        )
    layout = "positions" if model.column_names_ is None else "columns"
    names = model.label_names_ or model.n_labels_
    return PredictionColumns(names, layout, logits=model.kind == "logit").fit(None)
