"""`IndependentMixture`: several batches of independent labels, each with its weight."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, Unpack

import numpy as np
from scipy.special import logsumexp

from labelsure._kernels.chain_joints import SAFE_LOGIT
from labelsure._runtime.limits import CACHED_JOINT_BYTES, TIE, cut_rows
from labelsure._runtime.typing import Floats, Labelsets
from labelsure.distributions._answers import MaxMarginals, TopLabelsets
from labelsure.distributions._bridge import LabelsetDistribution, align_parts
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._chains import Chain, LinearChain
from labelsure.distributions._engines import DEFAULT_ENGINE, EngineSettings
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._mixture import Mixture
from labelsure.distributions._probabilities import read_shares
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.rows import code_keys

MAX_TIED = 2**12  # of labelsets with equal probabilities so many are compared by their codes


class IndependentMixture(Mixture):
    """Labels that are independent within each component: conditional Bernoulli mixtures.

    Marginals, log-probabilities, sizes (so F1's optimum), expected accuracies of given labelsets
    and the collision are exact at any number of labels: all but the last are means over the
    components. Entropy, mode, `top` and max-marginals come from the engines of a `ChainMixture`,
    of which this is the case without links.

    Parameters
    ----------
    components
        `IndependentLabels` over the same instances and labels.
    label_names
        One for each label; those of the first component by default.
    weights
        (n_components,) what each has of the mixture, or (n, n_components) by instance; None for
        equal ones.
    **settings
        Of the engine, as for `ChainMixture`.

    Examples
    --------
    Two labels that come together or not at all:

    >>> from labelsure import IndependentLabels
    >>> both, neither = IndependentLabels([[0.9, 0.9]]), IndependentLabels([[0.1, 0.1]])
    >>> dist = IndependentMixture([both, neither], weights=[0.25, 0.75])
    >>> dist.probabilities().round(3)
    array([[0.61, 0.09, 0.09, 0.21]])
    >>> dist.marginals().round(3), dist.profile().collision.round(4)
    (array([[0.3, 0.3]]), array([0.4324]))
    """

    def __init__(
        self,
        components: Iterable[IndependentLabels],
        label_names: Iterable[Any] | None = None,
        *,
        weights: Any = None,
        **settings: Unpack[EngineSettings],
    ) -> None:
        parts = list(components)
        if not parts or not all(isinstance(part, IndependentLabels) for part in parts):
            kinds = sorted({type(part).__name__ for part in parts}) or "none"
            raise InputError(f"`components` must be `IndependentLabels`, one or more, got {kinds}.")
        shapes = {(len(part), part.n_labels) for part in parts}
        if len(shapes) > 1:
            raise InputError(
                "`components` must all have the same instances and labels, got (n_samples, "
                f"n_labels) of {sorted(shapes)}."
            )
        parts = align_parts(parts, "components")
        n_samples, n_labels = shapes.pop()
        names = parts[0].label_names if label_names is None else label_names
        shares = read_shares(weights, n_samples, len(parts))
        super().__init__(parts, shares, n_samples, n_labels, names)
        self._index = parts[0].index
        DEFAULT_ENGINE.replace(settings)  # refuses what is wrong
        self._engine = settings

    @cached_property
    def _chains(self) -> ChainMixture:
        """The same distributions as chains without links."""
        order, none = np.arange(self.n_labels), np.zeros((self.n_labels, self.n_labels))
        # A label that is certain has a logit that is not a number; this one is as certain.
        logits = [np.clip(part._marginal_logits(), -SAFE_LOGIT, SAFE_LOGIT) for part in self._parts]
        chains: list[Chain] = [LinearChain.from_fitted(order, base, none) for base in logits]
        return ChainMixture(chains, self.label_names, weights=self._weights, **self._engine)

    @property
    def n_components(self) -> int:
        """The number of components."""
        return len(self._parts)

    def _with_parts(self, parts: list[Any], shares: Floats | None, n_samples: int) -> Self:
        new = super()._with_parts(parts, shares, n_samples)
        new.__dict__.pop("_chains", None)
        return new

    def _with_engine(self, settings: EngineSettings) -> Self:
        if not settings:
            return self
        new = copy(self)
        new._engine = {**self._engine, **settings}
        new.__dict__["_chains"] = self._chains._with_engine(settings)
        return new

    def _members(self) -> list[LabelsetDistribution]:
        return list(self._parts)

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        owners = self._draw_owners(size, generator)
        p = np.stack([part._marginals() for part in self._parts], axis=1)
        chosen = p[np.arange(len(self))[:, np.newaxis], owners]
        return (generator.random(chosen.shape) < chosen).astype(np.int8)

    # What is not linear in the probabilities: by the engines, but for the collision.

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        found, mode = self._chains._profile_and_mode()
        profile = self._with_exact_collision(found)
        tied = np.flatnonzero(profile.log_runner_up >= profile.log_top - TIE)
        if tied.size:
            mode[tied] = self._take(tied)._mode()
        return profile, mode

    def _with_exact_collision(self, profile: Profile) -> Profile:
        """Return the profile with the collision in closed form. Section 16.

        Two draws, of components k and l, agree in a label with probability q_k q_l + (1 - q_k)
        (1 - q_l).
        """
        if profile.bounds is None:
            return profile  # exact already
        log_collision = np.empty(len(self))
        n_pairs = self.n_components**2
        for rows in cut_rows(len(self), 8 * n_pairs * self.n_labels, CACHED_JOINT_BYTES):
            q = np.stack([part._marginals()[rows] for part in self._parts], axis=1)
            agree = q[:, :, None] * q[:, None] + (1 - q[:, :, None]) * (1 - q[:, None])
            log_weights = log(self._weights[rows])
            pairs = log(agree).sum(axis=3) + log_weights[:, :, None] + log_weights[:, None]
            log_collision[rows] = logsumexp(pairs, axis=(1, 2))
        ends = tuple(replace(end, log_collision=log_collision) for end in profile.bounds)
        return replace(
            profile,
            log_collision=log_collision,
            bounds=(ends[0], ends[1]),
            collision_error=np.zeros(len(self)),
        )

    def _mode(self) -> Labelsets:
        return np.ascontiguousarray(self._top(1).labelsets[:, 0])

    def _top(self, k: int) -> TopLabelsets:
        # Sums over components that are equal may differ by rounding: of such the lowest code first.
        found = _sort_ties(self._chains._top(min(k + 1, 2**self.n_labels)))
        logs, last = found.logs[:, :k], found.logs[:, -1]
        best = TopLabelsets(found.labelsets[:, :k], logs, found.log_high[:, :k])
        if k < min(2**self.n_labels, MAX_TIED):
            rows = np.flatnonzero((last > -np.inf) & (logs[:, -1] - TIE <= last))
            if rows.size:  # more of these may have a lower code
                more = self._take(rows)._top(min(4 * k, 2**self.n_labels, MAX_TIED))
                best.labelsets[rows], logs[rows] = more.labelsets[:, :k], more.logs[:, :k]
        return best

    def _max_marginals(self, log_at_least: float = -np.inf) -> MaxMarginals:
        return self._chains._max_marginals(log_at_least)


def _sort_ties(found: TopLabelsets) -> TopLabelsets:
    """Return the same labelsets, those that are equally probable in the order of their codes."""
    logs, n_labels = found.logs, found.labelsets.shape[2]
    group = np.zeros(logs.shape, dtype=np.intp)
    group[:, 1:] = np.cumsum(logs[:, :-1] - TIE > logs[:, 1:], axis=1)
    keys = code_keys(found.labelsets.reshape(-1, n_labels)).reshape(logs.shape)
    order = np.array([np.lexsort(one) for one in zip(keys, group, strict=True)], dtype=np.intp)
    order = order.reshape(logs.shape)
    labelsets = np.take_along_axis(found.labelsets, order[:, :, np.newaxis], axis=1)
    return TopLabelsets(labelsets, np.take_along_axis(logs, order, axis=1), found.log_high)
