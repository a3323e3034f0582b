"""`report_files`: the page of a saved model and of the rows of files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelsure._runtime.storage import expand_path
from labelsure._runtime.typing import AnyPath
from labelsure.errors import InputError
from labelsure.labelsets.rows import is_sparse
from labelsure.tables.scoring._unit_scores import ModelFile
from labelsure.tables.table_files._units import UNIT_ROWS, list_units, read_table, read_unit

if TYPE_CHECKING:
    from labelsure._runtime.pages import Page
    from labelsure.model._aware_classifier import AccuracyAwareClassifier


def report_files(
    model: AnyPath,
    inputs: AnyPath | Iterable[AnyPath] = (),
    *,
    truth: AnyPath | None = None,
    label_column: str | None = None,
    sep: str | None = None,
    id_column: str | None = None,
    title: str | None = None,
    open_cost: float | None = None,
    rows_per_unit: int = UNIT_ROWS,
    trust: Iterable[str] = (),
) -> Page:
    """Return a page on a saved model, and on its predictions for the rows of files.

    Parameters
    ----------
    model
        The file of an `AccuracyAwareClassifier`.
    inputs
        Files or folders, as for `labelsure.tables.table_files.list_units`; none for the model
        alone.
    truth
        A table of the rows' true labels, where it is known; then there must be one input, which is
        read as a whole.
    label_column, sep
        Of the truth, as of `labelsure.tables.file_models.calibrate_model`.
    id_column
        The column that names the rows; None for that of the model, if it has one.
    title
        Of the page; None names the model and the input.
    open_cost
        As of `AccuracyAwareClassifier.report`.
    rows_per_unit, trust
        As for `score_files`.
    """
    from labelsure.model._model_report import make_model_report

    fitted = ModelFile.find(expand_path(model), tuple(trust)).load()
    paths: list[Any] = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    if title is None:
        names = ", ".join(Path(path).name for path in paths)
        title = f"{Path(model).stem}: {names}" if names else Path(model).stem
    if truth is None:
        batches = _predict_units(fitted, paths, id_column, rows_per_unit)
        return make_model_report(fitted, batches, title, open_cost)
    if len(paths) != 1:
        raise InputError(
            f"The truth belongs to one input, got {len(paths)}. Join the inputs, or make a page "
            "for each."
        )
    names_of_truth = {"label_column": label_column, "sep": sep, "id_column": id_column}
    batches = _predict_with_truth(fitted, paths[0], truth, **names_of_truth)
    return make_model_report(fitted, batches, title, open_cost)


def _predict_units(
    model: AccuracyAwareClassifier, paths: list[Any], id_column: str | None, rows: int
) -> Iterator[Any]:
    from labelsure.tables.file_models._input_table import InputTable

    inputs = InputTable(model, id_column)
    for unit in list_units(paths, rows=rows) if paths else []:
        X, ids = inputs.read(read_unit(unit), repr(Path(unit.path).name))
        dist, Y_pred = model.predict_all(X)
        yield dist if ids is None else dist._with_index(ids), Y_pred, None


def _predict_with_truth(
    model: AccuracyAwareClassifier,
    path: AnyPath,
    truth: AnyPath,
    *,
    label_column: str | None,
    sep: str | None,
    id_column: str | None,
) -> Iterator[Any]:
    from labelsure.tables.file_models._input_table import InputTable
    from labelsure.tables.file_models._truth_tables import join_truth, read_truth

    inputs = InputTable(model, id_column)
    frame, known = read_table(path), read_table(truth)
    has_id = inputs.id_column is not None and all(
        inputs.id_column in table.columns for table in (frame, known)
    )
    by = inputs.id_column if has_id or id_column is not None else None
    found = read_truth(
        known,
        repr(Path(truth).name),
        labels=model.label_names_,
        n_labels=model.n_labels_,
        label_column=label_column,
        sep=sep,
        id_column=by,
        sparse=inputs.is_sparse,
    )
    where = repr(Path(path).name)
    frame, Y = join_truth(frame, found, by, where)
    X, ids = inputs.read(frame, where)
    dist, Y_pred = model.predict_all(X)
    Y_true = dist.align(Y if is_sparse(Y) else Y.to_numpy(), "truth")
    yield dist if ids is None else dist._with_index(ids), Y_pred, Y_true
