"""Every form of labelsets gives the same result in every function, or an error."""

import inspect
import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import labelsure as ls
from labelsure.errors import LabelsureError
from labelsure.guarantees._labelset_region import RegionLabelsets

N, NAMES = 60, ["c", "b", "a"]  # in another order than sorted, and with other frequencies
INDEX = pd.Index([f"r{i}" for i in range(N)])
_rng = np.random.default_rng(0)
P = np.clip(_rng.beta(0.5, 0.5, (N, 3)) * [0.9, 0.6, 0.3], 0.02, 0.98)
Y = (_rng.random((N, 3)) < P).astype(int)
Y[0], Y[1] = [0, 0, 0], [1, 1, 1]
PREDICTED = (P > 0.4).astype(int)
X = np.column_stack([P, _rng.normal(size=N)])
RULES = ls.LabelConstraints(parents={"a": "b"})
VOTES = (_rng.random((N, 9, 3)) < P[:, None]).astype(int)


def list_names(rows):
    return [[name for name, bit in zip(NAMES, row, strict=True) if bit] for row in rows]


def frame_of(rows):
    return pd.DataFrame(rows, INDEX, NAMES)


def object_array(lists):
    array = np.empty(len(lists), dtype=object)
    array[:] = lists
    return array


class Tensor:
    """An array of another library: indexed like one, with a data type that NumPy lacks."""

    dtype = object()

    def __init__(self, rows):
        self.rows, self.shape, self.ndim = rows, rows.shape, rows.ndim

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, dtype)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, key):
        return Tensor(self.rows[key])


def decisions(rows):
    return ls.decisions.Decisions(rows, tuple(NAMES), INDEX)


SHUFFLED = np.random.default_rng(1).permutation(N)
POSITIONS = {
    "decisions": decisions,
    "sparse decisions": lambda Y: decisions(sp.csr_array(Y)),
    "sparse": sp.csr_matrix,
    "frame": frame_of,
    "frame without an index": lambda Y: pd.DataFrame(Y, columns=NAMES),
    "tensor": Tensor,
    "polars": lambda Y: pl.DataFrame(Y, schema=NAMES),
    "data set": lambda Y: ls.Dataset(np.zeros((N, 1)), Y, NAMES).Y,
}
"""Forms whose columns are in the order of the predictions."""

PERMUTED = {
    "permuted decisions": lambda Y: ls.decisions.Decisions(Y[:, [2, 0, 1]], ("a", "c", "b"), INDEX),
    "permuted frame": lambda Y: frame_of(Y)[["a", "c", "b"]],
    "permuted data set": lambda Y: ls.Dataset(np.zeros((N, 1)), Y[:, [2, 0, 1]], list("acb")).Y,
    "permuted polars": lambda Y: pl.DataFrame(Y, schema=NAMES)[["a", "c", "b"]],
}
"""Forms whose columns are in another order, which only names tell."""

LISTED = {"lists of names": list_names, "object array": lambda Y: object_array(list_names(Y))}
"""Forms in which each instance lists names."""

SHUFFLED_ROWS = {
    "shuffled frame": lambda Y: frame_of(Y).iloc[SHUFFLED],
    "shuffled decisions": lambda Y: decisions(Y)[SHUFFLED],
}
"""Forms whose rows are in another order, which only the index tells."""


def labelsets_of(holder, named=False):
    """The labelsets of a data set, or of what was read, with the labels in the order of `NAMES`."""
    rows = getattr(holder, "labelsets", getattr(holder, "Y", None))
    rows = rows.toarray() if sp.issparse(rows) else rows
    index = holder.index if named and holder.index is not None else INDEX
    frame = pd.DataFrame(rows, index, holder.label_names or NAMES)
    return frame.reindex(columns=NAMES, index=INDEX if index[0] in INDEX else None).to_numpy()


def dist_of(named):
    return ls.IndependentLabels(frame_of(P) if named else P)


def features(named):
    return pd.DataFrame(X, INDEX, list("uvwx")) if named else X


def scores(named):
    return frame_of(P) if named else P


def fitted_marginals(model, named):
    """The marginals of a fitted classifier with the columns in the order of `NAMES`."""
    dist = model.predict_distribution(features(named))
    if dist.label_names is None:
        return dist.marginals()
    return pd.DataFrame(dist.marginals(), columns=dist.label_names)[NAMES].to_numpy()


def precomputed_marginals(named, model):
    dist = model.predict_distribution(scores(named))
    names = NAMES if dist.label_names is None else dist.label_names
    return pd.DataFrame(dist.marginals(), columns=names)[NAMES].to_numpy()


@cache
def aware(named):
    model = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), "f1", random_state=0, cv=2)
    return model.fit(scores(named), frame_of(Y) if named else Y)


@cache
def judging(named):
    """A model that judges predictions of another system."""
    model = ls.AccuracyAwareClassifier(
        ls.PrecomputedProbabilities(), "f1", share=0.5, random_state=0, recalibration=None
    )
    return model.fit(scores(named), frame_of(Y) if named else Y, Y_pred=1 - Y)


@cache
def estimator(named):
    return ls.AccuracyEstimator("f1").fit(dist_of(named), Y)


@cache
def given_estimator(named):
    return ls.AccuracyEstimator("f1").fit(dist_of(named), Y, PREDICTED)


def answers(named):
    return ls.PartialLabelsets(np.where(P > 0.3, PREDICTED, -1), *named_parts(named))


def decisions_of(named):
    return ls.decisions.Decisions(np.array(PREDICTED), *named_parts(named), gap=np.zeros(N))


def named_parts(named):
    return (NAMES, INDEX) if named else (None, None)


def table(named):
    return ls.ScoreTable.from_distribution(dist_of(named), Y)


def values_of(estimate):
    return [estimate.mean, estimate.low, estimate.high]


BESIDE = {
    "accuracy": [
        lambda Y, named: ls.accuracy(frame_of(PREDICTED) if named else PREDICTED, Y, "f1"),
        lambda Y, named: np.sort(
            ls.accuracy(Y, frame_of(PREDICTED) if named else PREDICTED, "f1")
        ),  # the order is that of Y
    ],
    "expected_accuracy": lambda Y, named: (
        ls.expected_accuracy(dist_of(named), Y, metric="f1").value
    ),
    "precision_at_k": lambda Y, named: ls.decisions.precision_at_k(dist_of(named), Y, 2),
    "suggest_floor": lambda Y, named: ls.distributions.suggest_floor(
        ls.SparseIndependentLabels(
            sp.csr_array(np.where(P > 0.2, P, 0)), label_names=named_parts(named)[0]
        )._with_index(named_parts(named)[1]),
        Y,
    ),
    "shift_test": lambda Y, named: ls.shift_test(dist_of(named), dist_of(named), Y_pred=Y).auc,
    "AccuracyEstimator.fit": [
        lambda Y, named: values_of(
            ls.AccuracyEstimator("f1").fit(dist_of(named), Y).estimate(dist_of(named))
        ),
        lambda Y, named: values_of(
            ls.AccuracyEstimator("f1")
            .fit(dist_of(named), PREDICTED, Y)
            .estimate(dist_of(named), Y, shift="ignore")
        ),
        lambda Y, named: values_of(
            ls.AccuracyEstimator("f1")
            .fit(dist_of(named), PREDICTED, Y_train=Y)
            .estimate(dist_of(named), shift="ignore")
        ),
    ],
    "AccuracyEstimator.estimate": [
        lambda Y, named: values_of(
            estimator(named).estimate(dist_of(named), Y_true=Y, rows=np.arange(N))
        ),
        lambda Y, named: values_of(
            given_estimator(named).estimate(dist_of(named), Y, shift="ignore")
        ),
    ],
    "AccuracyEstimator.estimate_rows": lambda Y, named: (
        given_estimator(named).estimate_rows(dist_of(named), Y).accuracy
    ),
    "AccuracyEstimator.summarise": lambda Y, named: values_of(
        given_estimator(named).estimate(
            given_estimator(named).summarise(dist_of(named), Y), shift="ignore"
        )
    ),
    "AccuracyEstimator.predict": lambda Y, named: given_estimator(named).predict(dist_of(named), Y),
    "AccuracyEstimator.estimate_labels": lambda Y, named: (
        given_estimator(named).estimate_labels(dist_of(named), Y).to_frame().to_numpy()
    ),
    "ScoreTable.from_distribution": [
        lambda Y, named: ls.ScoreTable.from_distribution(dist_of(named), Y).accuracy("f1", 1.0),
        lambda Y, named: ls.ScoreTable.from_distribution(
            dist_of(named), PREDICTED, Y, metrics=["f1"]
        ).expected("f1", 1.0),
    ],
    "LabelThresholds.fit": lambda Y, named: (
        ls.LabelThresholds("each").fit(dist_of(named), Y).thresholds_
    ),
    "LabelsetDistribution.align": lambda Y, named: dist_of(named).align(Y),
    "LabelsetDistribution.expected": lambda Y, named: dist_of(named).expected("f1", Y).value,
    "LabelsetDistribution.log_prob": lambda Y, named: dist_of(named).log_prob(Y),
    "ByGroup.fit": lambda Y, named: (
        ls.ByGroup(ls.LabelsetRegion(0.8))
        .fit(dist_of(named), Y, np.full(len(dist_of(named)), "a"))
        .parts_["a"]
        .threshold_
    ),
    "LabelsetRegion.fit": lambda Y, named: ls.LabelsetRegion(0.8).fit(dist_of(named), Y).threshold_,
    "RegionLabelsets.contains": lambda Y, named: (
        ls.LabelsetRegion(0.8).fit(dist_of(named), PREDICTED).predict(dist_of(named)).contains(Y)
    ),
    "PartialLabelsets.accuracy": lambda Y, named: answers(named).accuracy(Y, "hamming"),
    "PartialLabelsets.agrees": lambda Y, named: answers(named).agrees(Y),
    "PartialLabelsets.align": lambda Y, named: answers(named).align(Y),
    "PartialLabelsets.compare": lambda Y, named: answers(named).compare(Y).to_numpy(),
    "PartialLabelsets.counts": lambda Y, named: np.stack(answers(named).counts(Y)),
    "Recalibration.fit": lambda Y, named: (
        ls.LabelwiseCalibration(gate=False)
        .fit(dist_of(named), Y)
        .transform(dist_of(named))
        .marginals()
    ),
    "Recalibration.fit_parts": lambda Y, named: (
        ls.LabelwiseCalibration(gate=False)
        .fit_parts([dist_of(named)], [Y])
        .transform(dist_of(named))
        .marginals()
    ),
    "PrecomputedProbabilities.fit": lambda Y, named: precomputed_marginals(
        named, ls.PrecomputedProbabilities().fit(scores(named), Y)
    ),
    "AccuracyAwareClassifier.fit": lambda Y, named: (
        ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), "f1", random_state=0, cv=2)
        .fit(scores(named), Y)
        .predict_accuracy(scores(named))
    ),
    "AccuracyAwareClassifier.score": lambda Y, named: aware(named).score(scores(named), Y),
    "AccuracyAwareClassifier.estimate": lambda Y, named: values_of(
        aware(named).estimate(scores(named), Y_true=Y, rows=np.arange(N))
    ),
    "AccuracyAwareClassifier.accept": lambda Y, named: judging(named).accept(
        scores(named), Y_pred=Y
    ),
    "AccuracyAwareClassifier.assess": lambda Y, named: (
        judging(named).assess(scores(named), Y_pred=Y).accuracy
    ),
    "AccuracyAwareClassifier.estimate_labels": lambda Y, named: (
        judging(named).estimate_labels(scores(named), Y_pred=Y).to_frame()["n_predicted"].to_numpy()
    ),
    "AccuracyAwareClassifier.predict_accuracy": lambda Y, named: judging(named).predict_accuracy(
        scores(named), Y_pred=Y
    ),
    "AccuracyAwareClassifier.report": lambda Y, named: [
        row["actual_recall"] for row in report_labels(named, Y)
    ],
    "RecalibratedClassifier.fit": lambda Y, named: (
        ls.RecalibratedClassifier(ls.PrecomputedProbabilities())
        .fit(scores(named), Y)
        .recalibration_.gain_
    ),
    "LabelsetPredictor.score": [
        lambda Y, named: (
            ls.PrecomputedProbabilities().fit(scores(named), PREDICTED).score(scores(named), Y)
        ),
        lambda Y, named: (
            ls.BinaryRelevance()
            .fit(features(named), frame_of(PREDICTED) if named else PREDICTED)
            .score(features(named), Y)
        ),
    ],
}
"""Functions that hold labelsets beside predictions, which have names and an index, or neither."""


def report_labels(named, Y):
    page = aware(named).report(scores(named), Y)
    return sorted(page.data["labels"]["rows"], key=lambda row: row["name"])


ALONE = {
    "LabelsetClassifier.fit": [
        lambda Y, named, kind=kind: fitted_marginals(kind().fit(features(named), Y), named)
        for kind in (ls.BinaryRelevance, ls.LabelPowerset)  # chains depend on the order of labels
    ],
    "AccuracyAwareClassifier.fit": lambda Y, named: (
        ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "f1", random_state=0, cv=2)
        .fit(features(named), Y)
        .predict_accuracy(features(named))
    ),
    "AccuracyAwareClassifier.fit of another library's model": lambda Y, named: (
        ls.AccuracyAwareClassifier(
            MultiOutputClassifier(LogisticRegression()), "f1", random_state=0, cv=2
        )
        .fit(features(named), Y)
        .predict_accuracy(features(named))
    ),
    "RecalibratedClassifier.fit": lambda Y, named: fitted_marginals(
        ls.RecalibratedClassifier(random_state=0).fit(features(named), Y).estimator_, named
    ),
    "Dataset.__init__": lambda Y, named: labelsets_of(ls.Dataset(features(named), Y)),
    "LabelConstraints.check": lambda Y, named: sorted(
        int(str(row).removeprefix("r")) for row in RULES.check(Y, NAMES)["row"]
    ),
    "LabelConstraints.close": lambda Y, named: labelsets_of(RULES.close(Y, NAMES), named),
    "read_labelsets": lambda Y, named: labelsets_of(ls.read_labelsets(Y, NAMES), named),
}
"""Functions that take the order of the labels from Y, whose names reach their answers."""

EXEMPT = {
    "Chain.link_logits": "a chain has no names: its arguments are arrays that a mixture checked",
    "Chain.log_prob": "likewise",
    "Chain.path_conditionals": "likewise",
    "LinearChain.link_logits": "likewise",
    "LabelsetTable.__init__": "several labelsets for each instance, as arrays",
    "LabelsetTable.from_samples": "likewise",
    "ConstrainedCalibration.check_truth": "takes labelsets that were read",
    "Recalibration.check_truth": "likewise",
    "PredictionColumns.fit": "does not look at y",
    "TableColumns.fit": "does not look at y",
    "Assessment.__init__": "takes what was checked",
    "Decisions.__init__": "likewise",
    "NamedLabelsets.__init__": "likewise",
    "ListedLabelsets.__init__": "likewise",
    "TopLabelsets.__init__": "likewise",
    "from_indices": "positions of labels, not labelsets",
    "to_indices": "an array of zeros and ones, whose columns need no names",
    "to_names": "an array of zeros and ones, and the names of its columns",
}
"""Public callables with an argument of this name that take no labelsets in every form."""

ARGUMENTS = {"Y", "y", "Ys", "Y_true", "Y_pred", "Y_train", "samples", "labelsets"}


def callables_with_labelsets():
    """The qualified names of all public callables that have an argument for labelsets."""
    found = set()
    returned = [RegionLabelsets]
    rooms = (ls, ls.classifiers, ls.decisions, ls.distributions, ls.estimation, ls.guarantees)
    rooms += (ls.labelsets, ls.metrics, ls.model, ls.tables)
    everything = {name: getattr(room, name) for room in rooms for name in room.__all__}
    for public in [*everything.values(), *returned]:
        members = [public]
        if inspect.isclass(public):
            is_routine = inspect.getmembers(public, inspect.isroutine)
            members = [f for name, f in is_routine if name == "__init__" or name[0] != "_"]
        for member in members:
            if not (getattr(member, "__module__", None) or "").startswith("labelsure"):
                continue
            if ARGUMENTS & set(inspect.signature(member).parameters):
                found.add(member.__qualname__)
    return found


def test_every_public_callable_that_takes_labelsets_is_held_to_the_law():
    listed = {*BESIDE, *ALONE, *EXEMPT}
    found = callables_with_labelsets()
    assert not found - listed
    assert not {name for name in listed if " " not in name} - found
    assert not set(EXEMPT) & {*BESIDE, *ALONE}


def cases(functions):
    return [
        pytest.param(function, id=f"{name} {number}" if isinstance(several, list) else name)
        for name, several in functions.items()
        for number, function in enumerate(several if isinstance(several, list) else [several])
    ]


def ask(function, form, named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(function(form(Y), named), dtype=float)


def assert_same(found, expected, name):
    assert np.shape(found) == np.shape(expected), name
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-9, equal_nan=True), name


@pytest.mark.parametrize("function", cases(BESIDE))
def test_labels_and_rows_go_by_name_where_the_predictions_have_names(function):
    expected = ask(function, np.asarray, True)
    for name, form in {**POSITIONS, **PERMUTED, **LISTED, **SHUFFLED_ROWS}.items():
        assert_same(ask(function, form, True), expected, name)


@pytest.mark.parametrize("function", cases(BESIDE))
def test_names_that_are_listed_are_refused_where_the_predictions_have_none(function):
    expected = ask(function, np.asarray, False)
    for name, form in POSITIONS.items():
        assert_same(ask(function, form, False), expected, name)
    for form in LISTED.values():
        with pytest.raises(LabelsureError, match="lists"):
            ask(function, form, False)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("function", cases(ALONE))
def test_names_reach_what_is_fitted(function, named):
    expected = ask(function, np.asarray, named)
    forms = {**POSITIONS, **PERMUTED, **LISTED, **(SHUFFLED_ROWS if named else {})}
    for name, form in forms.items():
        assert_same(ask(function, form, named), expected, name)
