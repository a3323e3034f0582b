"""Models from files: trained on a table, or calibrated on another system's predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from labelsure._runtime.arguments import read_choice
from labelsure._runtime.notebook import list_names
from labelsure._runtime.progress import count_fitted
from labelsure._runtime.storage import expand_path, show_name
from labelsure._runtime.typing import AnyPath, Estimator, JsonObject, Labelsets, LabelsetsLike
from labelsure.classifiers._chain_classifiers import (
    BinaryRelevance,
    ClassifierTrellis,
    EnsembleOfClassifierChains,
    ProbabilisticClassifierChain,
)
from labelsure.classifiers._powerset_classifier import LabelPowerset
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.classifiers.recalibration._recalibrated_classifier import RecalibratedClassifier
from labelsure.errors import MAX_NAMES_LISTED, DataError, InputError, unknown_name
from labelsure.labelsets.answers import LABELS, SCORES, UNKNOWN, names_in_answers
from labelsure.labelsets.names import list_some
from labelsure.saving import damaged, read_description
from labelsure.tables.column_choice import (
    ColumnChoice,
    read_index,
    read_labels,
    split_names,
)
from labelsure.tables.files import TextFormat, list_inputs, read_table, unknown_column
from labelsure.tables.inputs import (
    ANSWERS,
    CELLS,
    LAYOUTS,
    LISTED,
    LISTS,
    Layout,
    PredictionColumns,
    TableColumns,
    all_listed_labels,
    check_lists_labels,
    find_layout,
    infer_roles,
)
from labelsure.tables.truth import ID, read_truth, shared_id

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.model._aware_classifier import AccuracyAwareClassifier
    from labelsure.model._model_card import ModelCard


def _make_forest(seed: int | None) -> Estimator:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=200, min_samples_leaf=2, random_state=seed)


CLASSIFIERS: dict[str, Callable[[int | None], Any]] = {
    "ecc": lambda seed: EnsembleOfClassifierChains(random_state=seed),
    "br": lambda seed: BinaryRelevance(random_state=seed),
    "trellis": lambda seed: ClassifierTrellis(random_state=seed),
    "pcc": lambda seed: ProbabilisticClassifierChain(random_state=seed),
    "powerset": lambda seed: LabelPowerset(random_state=seed),
    "layer": lambda seed: RecalibratedClassifier(
        BinaryRelevance(random_state=seed), "dependence", random_state=seed
    ),
    "forest": _make_forest,
}
"""Constructors of classifiers by name, from a random seed."""

DEFAULT_CLASSIFIER = "layer"
"""Chosen by benchmarks/training.py, whose results are in docs/evidence/training.csv."""

DEFAULT_REASON = (
    "layer: binary relevance with recalibrated dependence. Of five classifiers it has the highest "
    "mean exact match, Jaccard and F1 on nine data sets and a simulated one; ten chains train "
    "longer."
)

LEARNERS_PER_LABEL = {"ecc": 10, "br": 1, "trellis": 1, "pcc": 1, "layer": 6}
"""Base learners of one fit per label, for the progress bar."""


@dataclass(frozen=True)
class DescribedFile:
    """Description of a saved model.

    Parameters
    ----------
    path
        Of the file.
    kind
        The class that was saved.
    label_names
        Of the model; None where it has none.
    versions
        Versions of the packages that wrote the file, by name.
    trust
        Types that must be trusted to load it.
    card
        Of an `AccuracyAwareClassifier`; None for others.
    """

    path: str
    kind: str
    label_names: list[str] | None
    versions: dict[str, str]
    trust: list[str]
    card: ModelCard | None

    def to_dict(self) -> JsonObject:
        """Plain values for JSON."""
        card = None if self.card is None else self.card.to_dict()
        return {**vars(self), "card": card}

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        lines = [f"model: {self.kind}", f"written by: {versions}"]
        if self.trust:
            lines.append(f"must be trusted to load it: {', '.join(self.trust)}")
        if self.card is not None:
            lines.append(str(self.card))
        elif self.label_names is not None:
            names = list_names(self.label_names, MAX_NAMES_LISTED)
            lines.append(f"labels: {len(self.label_names)} ({names})")
        return "\n".join(lines)


def describe_file(path: AnyPath) -> DescribedFile:
    """Description of a saved model; nothing in the file is imported or built.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from labelsure import BinaryRelevance
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "m.labelsure"
    ...     BinaryRelevance().fit([[0.0], [1.0]], [[0, 1], [1, 0]]).save(path)
    ...     print(describe_file(path))
    model: BinaryRelevance
    written by: labelsure ...
    labels: 2 (y0, y1)
    """
    from labelsure.model._model_card import ModelCard

    place = expand_path(path)
    header = read_description(place)
    try:
        card = None if header.get("card") is None else ModelCard(**header["card"])
        names = header.get("label_names")
        described = DescribedFile(
            str(path), header["kind"], names, header["versions"], header["trust"], card
        )
        str(described)  # which fails where a value is of another type
    except Exception as error:  # whatever the file says, it is to blame
        raise damaged(place.name, error) from error
    return described


def train_model(
    data: AnyPath | Sequence[AnyPath] | pd.DataFrame,
    *,
    labels: Any = None,
    label_column: str | None = None,
    sep: str | None = None,
    id_column: str | None = None,
    drop: Any = (),
    roles: Mapping[str, str] | None = None,
    groups: str | None = None,
    classifier: str = DEFAULT_CLASSIFIER,
    csv_sep: str | None = None,
    encoding: str | None = None,
    n_jobs: int | None = None,
    random_state: int | None = 0,
    **settings: Any,
) -> AccuracyAwareClassifier:
    r"""Train a classifier on a table whose columns are numbers, categories and texts.

    `settings` are those of `AccuracyAwareClassifier`, such as `metric` and `target`. The column
    `groups` names groups of dependent rows, which are never split; it is no feature.

    Returns
    -------
    A fitted `AccuracyAwareClassifier` around a pipeline of `TableColumns` and the classifier.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> rows = "".join(f"{i % 9},{'red' if i % 2 else 'blue'},{i % 9 > 4:d},{i % 2}\n"
    ...                for i in range(180))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("size,colour,large,dark\n" + rows)
    ...     model = train_model(path, labels="large,dark", classifier="br")
    >>> model.label_names_
    ('large', 'dark')
    >>> print(model.estimator_[0])
    size: number (scaled; missing values imputed by the median)
    colour: category (one column for each value; others than in training count as none of them)
    large: label (to be predicted)
    dark: label (to be predicted)
    """
    from labelsure.model._aware_classifier import AccuracyAwareClassifier

    if classifier not in CLASSIFIERS:
        raise unknown_name("classifier", classifier, CLASSIFIERS)
    if (labels is None) == (label_column is None):
        raise InputError(
            "Either `labels` (columns of zeros and ones) or `label_column` (a column of label "
            f"names) must be given, got {'neither' if labels is None else 'both'}."
        )
    frame, where = _load(data, TextFormat(csv_sep, encoding), "the table")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if groups is not None and groups not in frame.columns:
        raise unknown_column(groups, frame.columns, where)
    group_columns = () if groups is None else (groups,)
    choice = ColumnChoice(
        labels or [label_column], id_column, [*split_names(drop, []), *group_columns], sep
    )
    assigned = choice.assign(list(frame.columns))
    if id_column is not None:  # ids that are missing or there twice are refused
        read_index(frame[id_column], where, "the id")
    Y, names = read_labels(
        frame[assigned.labels], sep, where, names_required=label_column is not None
    )
    check_labels_vary(Y, names, where)
    used_columns = {*assigned.labels, *assigned.features, id_column}
    inferred = infer_roles(
        frame,
        id_column=id_column,
        label_columns=assigned.labels,
        left_out=[name for name in frame.columns if name not in used_columns],
        overrides=roles,
    )
    chosen = CLASSIFIERS[classifier](random_state)
    if classifier != "forest":  # a forest predicts by them, too
        job_parameters = [name for name in chosen.get_params() if name.endswith("n_jobs")]
        chosen.set_params(**dict.fromkeys(job_parameters, n_jobs))
    pipeline = Pipeline([("columns", TableColumns(inferred)), ("classifier", chosen)])
    settings = {name: value for name, value in settings.items() if (name, value) != ("cv", None)}
    model = AccuracyAwareClassifier(pipeline, n_jobs=n_jobs, random_state=random_state, **settings)
    codes = None if groups is None else frame[groups].to_numpy()
    Y_train = type(frame)(Y, columns=list(names))
    with count_fitted(_count_learners(classifier, len(names), model.cv)):
        return model.fit(frame.reset_index(drop=True), Y_train, groups=codes)


def _count_learners(classifier: str, n_labels: int, cv: Any) -> int | None:
    """Number of base learners to fit; None for other splits than shares and folds."""
    if not isinstance(cv, Real):
        return None
    n_fits = int(cv) + 1 if isinstance(cv, Integral) else 1
    return n_fits * LEARNERS_PER_LABEL.get(classifier, 0) * n_labels


def _load(table: Any, text: TextFormat, default_name: str) -> tuple[pd.DataFrame, str]:
    """Table and its name in messages: that of its first file, or `default_name`."""
    if hasattr(table, "iloc"):
        return table, default_name
    paths = list_inputs(table)
    return read_table(paths, text=text), show_name(paths[0])


def check_labels_vary(Y: Labelsets, names: Sequence[str], where: str) -> None:
    """Raise DataError for a label that is the same in every row."""
    for name, column in zip(names, Y.T, strict=True):
        if column.min() == column.max():
            raise DataError(
                f"Each label in {where} must be true in some rows and false in others, {name!r} is "
                f"{column[0]} in all {len(column)} rows. Leave that label out."
            )


def calibrate_model(
    predictions: AnyPath | pd.DataFrame,
    truth: AnyPath | pd.DataFrame,
    *,
    labels: Any = None,
    label_column: str | None = None,
    sep: str | None = None,
    id_column: str | None = None,
    kind: str | None = None,
    unknown: str = "drop",
    sparse: bool = False,
    floor: float | None = None,
    csv_sep: str | None = None,
    encoding: str | None = None,
    random_state: int | None = 0,
    **settings: Any,
) -> AccuracyAwareClassifier:
    r"""Make a model of another system's predictions, from labelled rows.

    Nothing is trained: all rows are new to the other system, so that a target is guaranteed.
    `settings` are those of `AccuracyAwareClassifier`, such as `metric` and `target`. Scores are of
    the `kind` "marginal" (None), "logit" or "logprob"; lists of answers are "votes". Names in
    answers that are no label of the truth are dropped with a warning, refused, or kept as further
    labels, by `unknown`.

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

    ColumnChoice(labels, id_column, (), sep)  # checks the types of these
    names = None if labels is None else [str(name).strip() for name in split_names(labels, [])]
    text = TextFormat(csv_sep, encoding)
    table, where = _load(predictions, text, "the predictions")
    truth_table, where_truth = _load(truth, text, "the truth")
    id_column = shared_id(ID, table, truth_table) if id_column is None else id_column
    layout = find_layout(table, id_column)
    kind = kind or ("votes" if layout.name == ANSWERS else "marginal")
    read_choice(kind, "kind", ("marginal", "logit", "logprob", "votes"))
    read_choice(unknown, "value of `unknown`", UNKNOWN)
    if (kind == "votes") != (layout.name == ANSWERS):
        raise InputError(
            f'The rows of {where} must be lists of answers for kind="votes" alone, got '
            f"{LAYOUTS[layout.name]} and kind={kind!r}."
        )
    is_sparse = sparse or layout.name == LISTED
    if is_sparse:
        check_lists_labels(layout.name)
    else:
        _check_all_listed(table, layout, names, floor, where)
    truth_options: Any = {"label_column": label_column, "sep": sep, "id_column": id_column}
    answered = names_in_answers(table[layout.column]) if kind == "votes" else ()
    if names is None and (answered or (is_sparse and layout.n_labels is None)):
        true_names = read_truth(
            truth_table, where_truth, sparse=True, **truth_options
        ).truth.label_names
        if true_names is None:
            raise InputError(
                f"The labels of the truth in {where_truth} must have names, as those of the "
                "predictions have, its columns are numbered. Name all labels in the order of its "
                "columns with `labels`."
            )
        if is_sparse:
            names = sorted({*_listed_labels(table, layout), *true_names})
        else:  # the truth says which labels there are
            new_names = [word for word in answered if word not in true_names and unknown == "keep"]
            if set(true_names) <= set(truth_table.columns):
                truth_table = truth_table.assign(**dict.fromkeys(new_names, 0))
            names = [*sorted(true_names), *new_names]
    true_labels = read_truth(
        truth_table,
        where_truth,
        labels=names,
        predicted=layout.label_names or (),
        n_labels=layout.n_labels,
        sparse=is_sparse,
        **truth_options,
    )
    table, label_names = true_labels.join(table, where), true_labels.truth.label_names
    Y: LabelsetsLike = true_labels.truth.labelsets
    if not is_sparse:
        Y = type(table)(Y.astype("int64"), columns=label_names)
    columns = PredictionColumns(
        label_names or int(Y.shape[1]),
        layout.name,
        layout.column,
        id_column=id_column,
        logits=kind in ("logit", "logprob"),
        sparse=is_sparse and layout.name != LISTED,
        unknown="refuse" if unknown == "refuse" else "drop",  # of a fitted model labels are fixed
    )
    probabilities = PrecomputedProbabilities(kind, label_names if is_sparse else None, floor)
    columns.fit(table).convert(table, where)  # which names the rows that cannot be read
    pipeline = Pipeline([("columns", columns), ("predictions", probabilities)])
    estimator = FrozenEstimator(pipeline.fit(table, Y))
    return AccuracyAwareClassifier(estimator, random_state=random_state, **settings).fit(table, Y)


def _check_all_listed(
    table: pd.DataFrame, layout: Layout, names: object, floor: float | None, where: str
) -> None:
    """Refuse rows that list different labels, unless `sparse` allows it."""
    if floor is not None:
        raise InputError(
            "`floor` must be None where rows list all labels. Leave it out, or pass `sparse` if "
            "rows list only some of them."
        )
    if layout.label_names is None or names is not None or layout.name not in (CELLS, LISTS):
        return
    first = set(layout.label_names)
    others = [label for label in _listed_labels(table, layout) if label not in first]
    if others:
        raise InputError(
            f"The rows of {where} list different labels: {list_some(others)} are not in row 0. If "
            "rows list some labels of many, say so by `sparse`; otherwise let the "
            "other system print the scores of all labels, e.g. by top_k=None."
        )


def _listed_labels(table: pd.DataFrame, layout: Layout) -> list[str]:
    cells = [LABELS, SCORES] if layout.name == LISTS else [str(layout.column)]
    return all_listed_labels([table[name] for name in cells])
