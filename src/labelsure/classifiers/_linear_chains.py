"""Fitted chains in the form that their learners allow: linear where all of them are.

A base learner is linear if its `predict_proba` is the logistic function of a linear form. A chain
of such learners needs no call of `predict_proba` for each prefix: the weights of the features and
of the earlier labels are all there is to know. What is read off a learner's attributes is compared
with its own `predict_proba` before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.classifiers._base_learners import Features, append_labels, positive_probability
from labelsure.distributions._chain_links import LinearChain, PrefixChain
from labelsure.distributions._probabilities import clip_certain

TOLERANCE = 1e-12  # of a probability: more than rounding means another function
N_PROBES = 8  # rows on which a linear form is compared with the learner itself

LinearWeights = tuple[Floats, Floats, Floats]
"""Of each position: the weights of the features (L, d), of the earlier positions (L, L), and the
intercept (L,). A tuple of arrays, because fitted models are saved with it."""


class ChainConditional:
    """P(label at a position = 1) given the earlier ones, by the learners' `predict_proba`.

    Parameters
    ----------
    learners
        The fitted learner of each position, on the features and the earlier labels.
    X
        The instances.
    """

    def __init__(self, learners: Sequence[Any], X: Features) -> None:
        self.learners = learners
        self.X = X

    def __call__(self, position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        """Return the probabilities of m pairs of an instance and a prefix.

        Parameters
        ----------
        position
            Which learner predicts.
        rows
            (m,) indices of instances.
        prefixes
            (m, position) values of the earlier positions.
        """
        features = append_labels(self.X[rows], prefixes)
        return clip_certain(positive_probability(self.learners[position], features))


def predict_logits(learner: Any, X: Features) -> Floats:
    """Return the logit of P(label = 1), (n,): unrounded where the learner is linear.

    Parameters
    ----------
    learner
        A fitted base learner.
    X
        The features.
    """
    form = read_linear_form(learner, X[choose_probes(X)])
    if form is None:
        return np.asarray(logit(clip_certain(positive_probability(learner, X))))
    return form.logits(X)


def choose_probes(X: Features) -> Indices:
    """Return a few rows of X, spread over all of them."""
    return np.linspace(0, X.shape[0] - 1, min(N_PROBES, X.shape[0])).astype(int)


def read_linear_weights(
    learners: Sequence[Any],
    X: Features,
    Y: Labelsets,
    parents: Sequence[Sequence[int]] | None = None,
) -> LinearWeights | None:
    """Return the weights of a chain whose learners are all linear, None for any other.

    Parameters
    ----------
    learners
        The fitted learner of each position.
    X
        Instances, of which a few serve as probes.
    Y
        (n, L) labelsets of the same instances in the order of the chain.
    parents
        The earlier positions that each learner sees, in its own order; None means all of them.
    """
    n_labels, n_features = len(learners), X.shape[1]
    probes = choose_probes(X)
    X, Y = X[probes], Y[probes]
    of_features, of_labels = np.zeros((n_labels, n_features)), np.zeros((n_labels, n_labels))
    intercepts = np.zeros(n_labels)
    for j, learner in enumerate(learners):
        seen = list(range(j) if parents is None else parents[j])
        form = read_linear_form(learner, append_labels(X, Y[:, seen]))
        if form is None:
            return None
        of_features[j], of_labels[j, seen] = form.weights[:n_features], form.weights[n_features:]
        intercepts[j] = form.intercept
    return of_features, of_labels, intercepts


def expand_chain(
    order: NDArray[np.integer[Any]],
    learners: Sequence[Any],
    linear: LinearWeights | None,
    X: Features,
) -> LinearChain | PrefixChain:
    """Return a chain in the form that its learners allow.

    Parameters
    ----------
    order
        The label at each position.
    learners
        The fitted learner of each position.
    linear
        What `read_linear_weights` found.
    X
        The instances to predict.
    """
    if linear is None:
        return PrefixChain(order, ChainConditional(learners, X), X.shape[0])
    of_features, of_labels, intercepts = linear
    base = np.asarray(X @ of_features.T) + intercepts
    return LinearChain.from_fitted(order.astype(np.intp), base, of_labels)


@dataclass(frozen=True)
class LinearForm:
    """P(label = 1) is the logistic function of ``features @ weights + intercept``."""

    weights: Floats
    intercept: float

    def logits(self, features: Features) -> Floats:
        """Return the linear form of each row, (n,)."""
        return np.asarray(features @ self.weights) + self.intercept

    def after(self, scale: Floats, shift: Floats) -> LinearForm:
        """Return the form in terms of z where the features are ``z * scale + shift``."""
        return LinearForm(
            self.weights * scale, float(self.intercept + (self.weights * shift).sum())
        )


def read_linear_form(learner: Any, probes: Features) -> LinearForm | None:
    """Return the learner's linear form, None if it has none or its probabilities differ from it.

    Parameters
    ----------
    learner
        A fitted base learner.
    probes
        A few rows of features to compare on.
    """
    form = _read_form(learner)
    if form is None or form.weights.shape != (probes.shape[1],):
        return None
    probabilities = positive_probability(learner, probes)
    difference = np.abs(expit(form.logits(probes)) - probabilities)
    return form if (difference <= TOLERANCE).all() else None


def _read_form(learner: Any) -> LinearForm | None:
    if isinstance(learner, Pipeline):
        return _read_pipeline(learner)
    # The class that `predict_proba` comes from: a subclass may have changed it.
    home = next((cls for cls in type(learner).__mro__ if "predict_proba" in vars(cls)), None)
    reader = _forms().get(home)
    return None if reader is None else reader(learner)


def _read_pipeline(pipeline: Pipeline) -> LinearForm | None:
    form = _read_form(pipeline[-1])
    for step in reversed(pipeline[:-1]):
        if form is None:
            return None
        if step in (None, "passthrough"):
            continue
        reader = _AFFINE.get(type(step))
        affine = None if reader is None else reader(step)
        form = None if affine is None else form.after(*affine)
    return form


def _read_coefficients(learner: Any) -> LinearForm | None:
    coefficients = learner.coef_
    if hasattr(coefficients, "toarray"):  # after `sparsify`
        coefficients = coefficients.toarray()
    if len(learner.classes_) != 2 or coefficients.shape[0] != 1:
        return None
    intercept = np.broadcast_to(learner.intercept_, 1)[0]
    return LinearForm(coefficients[0].astype(np.float64), float(intercept))


def _read_stochastic(learner: SGDClassifier) -> LinearForm | None:
    return _read_coefficients(learner) if learner.loss == "log_loss" else None


def _read_constant(learner: DummyClassifier) -> LinearForm | None:
    if learner.strategy != "prior" or list(learner.classes_) != [0, 1]:
        return None
    return LinearForm(np.zeros(learner.n_features_in_), float(logit(learner.class_prior_[1])))


@cache
def _forms() -> dict[Any, Callable[[Any], LinearForm | None]]:
    """Return readers of learners by the class that defines `predict_proba`."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # slow to import

    return {
        DummyClassifier: _read_constant,
        LinearDiscriminantAnalysis: _read_coefficients,
        LogisticRegression: _read_coefficients,
        SGDClassifier: _read_stochastic,
    }


AffineMap = tuple[Floats, Floats]
"""Scale and shift of each column: the transformed z is ``z * scale + shift``."""


def _read_standard(step: StandardScaler) -> AffineMap:
    return _make_centred(step.mean_ if step.with_mean else None, step.scale_, step.n_features_in_)


def _read_robust(step: RobustScaler) -> AffineMap:
    return _make_centred(step.center_, step.scale_, step.n_features_in_)


def _read_max_abs(step: MaxAbsScaler) -> AffineMap | None:
    # `clip` came with scikit-learn 1.8.
    clips = getattr(step, "clip", False)
    return None if clips else _make_centred(None, step.scale_, len(step.scale_))


def _read_min_max(step: MinMaxScaler) -> AffineMap | None:
    return None if step.clip else (step.scale_, step.min_)


def _read_identity(step: FunctionTransformer) -> AffineMap | None:
    return _make_centred(None, None, step.n_features_in_) if step.func is None else None


def _make_centred(centre: Floats | None, scale: Floats | None, n_features: int) -> AffineMap:
    centre = np.zeros(n_features) if centre is None else centre
    factor = np.ones(n_features) if scale is None else 1 / scale
    return factor, -centre * factor


_AFFINE: dict[type, Callable[[Any], AffineMap | None]] = {
    FunctionTransformer: _read_identity,
    MaxAbsScaler: _read_max_abs,
    MinMaxScaler: _read_min_max,
    RobustScaler: _read_robust,
    StandardScaler: _read_standard,
}
"""Transformers that map each column by itself and linearly. None where an option forbids it."""
