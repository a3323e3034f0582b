"""Distributions restricted to valid labelsets, each in the form that suits it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import Self

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.special import logit

from labelsure._runtime.limits import CHEAP_DENSE_LABELS
from labelsure._runtime.typing import Floats, Indices, Labelsets, Rows
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._chains import Chain, LinearChain, PrefixChain
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._rule_trellis import EffectiveOdds, make_rule_trellis
from labelsure.distributions._sparse_labels import SparseIndependentLabels
from labelsure.distributions._valid_labelsets import ValidLabelsets
from labelsure.errors import InputError, TooLargeError, warn
from labelsure.labelsets.codes import from_codes
from labelsure.labelsets.label_rules import LabelRules
from labelsure.labelsets.weighted import WeightedLabelsets

LISTED = 4096
"""Valid labelsets up to which all of them are listed: exact for any rules."""

LARGEST_LOGIT = 36.0
"""Of a probability: beyond, 1 - p cannot be told from 0."""

N_FOR_LOST = 64
"""Labelsets that a row of a table gets where none of its own is valid."""

CERTAIN = 40.0
"""Log-odds by which a rule exceeds all that a chain can say: a labelset that breaks a rule keeps a
probability of at most L exp(-40)."""


@lru_cache(maxsize=16)
def list_valid(rules: LabelRules) -> Labelsets | None:
    """All valid labelsets, (V, L); None where they are too many or rules form a large trellis."""
    return rules.valid_labelsets(LISTED)


def log_likelihood(rules: LabelRules, Y: Labelsets, logits: Floats) -> tuple[Floats, Floats]:
    """Log-probability of labelsets under `constrain_logits`, (n,), and its gradient, (n, L)."""
    is_forest = max(map(len, rules.parents)) <= 1
    if rules.families is not None and (is_forest or list_valid(rules) is None):
        odds = EffectiveOdds.of(rules, logits)
        return odds.log_prob(Y), odds.gradient(Y)
    dist = constrain_logits(logits, rules)
    return dist._log_prob(Y), Y - dist._marginals().value


def constrain(dist: LabelsetDistribution, rules: LabelRules) -> LabelsetDistribution:
    """Distributions over valid labelsets alone, with the label names and the index."""
    return mark(_restrict(dist, rules), dist, rules)


def mark(
    restricted: LabelsetDistribution, dist: LabelsetDistribution, rules: LabelRules
) -> LabelsetDistribution:
    """Restricted distributions with rules, and with names and index of the original ones."""
    restricted = restricted._with_index(dist.index)
    restricted._label_names, restricted._rules = dist.label_names, rules
    return restricted


@singledispatch
def _restrict(dist: LabelsetDistribution, rules: LabelRules) -> LabelsetDistribution:
    """Joints that fit, restricted and normalised; else independent labels with the marginals."""
    is_joint = not dist._is_independent and dist.n_labels <= CHEAP_DENSE_LABELS
    if not (is_joint or dist._is_dense):
        return constrain_logits(logits_of(dist), rules)
    valid = rules.is_valid(from_codes(np.arange(2**dist.n_labels), dist.n_labels))
    P = dist._probabilities() * valid
    lost = P.sum(axis=1) <= 0
    if lost.any():
        P[lost] = constrain_logits(logits_of(dist[lost]), rules)._probabilities()
    return DenseDistribution.from_trusted(P / P.sum(axis=1, keepdims=True))


def logits_of(dist: LabelsetDistribution) -> Floats:
    """Log-odds of the marginals, (n, L), finite."""
    return logit(dist.marginals()).clip(-LARGEST_LOGIT, LARGEST_LOGIT)


def constrain_logits(logits: Floats, rules: LabelRules) -> LabelsetDistribution:
    """Independent labels with these log-odds, restricted to valid labelsets."""
    valid = list_valid(rules)
    if valid is not None:
        return ValidLabelsets(valid, logits)
    if rules.families is None:
        raise TooLargeError(
            f"Labels in two groups, or groups across parents, need a list of all valid labelsets: "
            f"there are more than {LISTED:,} for {rules.n_labels} labels. Leave out a group, or "
            "name groups among children of the same parents."
        )
    return make_rule_trellis(rules, logits)


@_restrict.register
def _raise_ancestors(dist: SparseIndependentLabels, rules: LabelRules) -> LabelsetDistribution:
    """Give each ancestor at least the largest probability of the labels below it."""
    if rules.groups:
        raise InputError(
            "`exclusive` and `exactly_one` must be empty for SparseIndependentLabels, got "
            f"{len(rules.groups)} groups. Ancestors alone are raised there."
        )
    marginals, above = coo_array(dist.listed_marginals()), rules.implied
    row, label = marginals.coords
    reached = above[label]  # for each listed probability, the labels that are at least as probable
    labels, lengths = reached.indices, np.diff(reached.indptr)
    rows, values = np.repeat(row, lengths), np.repeat(marginals.data, lengths)
    order = np.lexsort((-values, labels, rows))
    is_largest = np.ones(len(order), dtype=bool)
    is_largest[1:] = (np.diff(rows[order]) > 0) | (np.diff(labels[order]) > 0)
    kept = order[is_largest]
    raised = csr_array((values[kept], (rows[kept], labels[kept])), shape=marginals.shape)
    return SparseIndependentLabels(raised, floor=dist._floor)


@_restrict.register
def _restrict_table(dist: LabelsetTable, rules: LabelRules) -> LabelsetDistribution:
    """Keep the valid labelsets, votes with all ancestors: a vote for a child implies its parent."""
    weighted, are_votes = dist.labelsets, dist._n_votes is not None
    rows = rules.close(weighted.rows) if are_votes else weighted.rows
    valid = rules.is_valid(rows)
    if are_votes and not valid.all():
        warn(
            f"{(~valid).sum():,} of {len(valid):,} distinct answers break a rule also with their "
            "ancestors. They are dropped.",
            UserWarning,
        )
    parts = [(rows[valid], weighted.weights[valid], weighted.instance[valid])]
    lost = np.flatnonzero(weighted.sum(weighted.weights * valid) <= 0)
    if lost.size:
        n_each = min(N_FOR_LOST, 2**dist.n_labels)
        best = constrain_logits(logits_of(dist[lost]), rules)._top(n_each)
        replacements = best.labelsets.reshape(-1, dist.n_labels), best.probabilities.ravel()
        parts.append((*replacements, np.repeat(lost, n_each)))
    labelsets, weights, instance = (np.concatenate(column) for column in zip(*parts, strict=True))
    merged = WeightedLabelsets.merge(labelsets, weights, instance, len(dist))
    restricted = LabelsetTable.from_weighted(merged.normalise())
    restricted._n_votes = dist._n_votes
    return restricted


@_restrict.register
def _link_chains(dist: ChainMixture, rules: LabelRules) -> LabelsetDistribution:
    if rules.has_dependent_choice:
        raise InputError(
            "`exactly_one` must be a group of labels without parents and in no other group for "
            "chains, got others. Use `exclusive`."
        )
    return dist._with_parts([link(chain, rules) for chain in dist._parts], dist._shares, len(dist))


@dataclass(frozen=True)
class HardLinks:
    """Rules as links between positions of a chain.

    A position must be true where offset + weights @ earlier labels is above 0, false where it is
    below 0, and is free where it is 0.

    Parameters
    ----------
    offsets
        (L,) minus the number of earlier ancestors; 1 for the last member of an exactly-one group.
    weights
        (L, L) of earlier positions: 1 for ancestors and descendants, -1 for labels that exclude the
        position, -2 where it is the last member of an exactly-one group.
    """

    offsets: Floats
    weights: Floats

    @classmethod
    def of(cls, rules: LabelRules, order: Indices) -> HardLinks:
        """Links for labels in some order.

        As implications and exclusions are closed transitively, no valid prefix is a dead end.
        """
        places, position = np.ix_(order, order), np.argsort(order)
        implies = np.tril((rules.implied.toarray() > 0)[places], -1)
        implied = np.tril((rules.implied.toarray() > 0)[places].T, -1)
        excludes = np.tril(rules.excluded[places], -1)
        is_last = np.zeros(len(order))
        is_last[
            [position[list(group.members)].max() for group in rules.groups if group.required]
        ] = 1
        weights = 1.0 * implies + implied - excludes * (1 + is_last)[:, np.newaxis]
        return cls(is_last - implies.sum(axis=1), weights)

    def force(self, Y: Labelsets) -> Floats:
        """Sign of the value that the earlier positions force, 0 for none, (n, L)."""
        return self.offsets + Y @ self.weights.T


def link(chain: Chain, rules: LabelRules) -> Chain:
    """Chain whose conditionals obey the rules, whatever its order.

    Linear chains stay linear: a rule adds log-odds beyond all others.
    """
    links = HardLinks.of(rules, chain.order)
    if isinstance(chain, LinearChain):
        return LinkedChain(chain, links)

    def conditional(position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        force = links.offsets[position] + prefixes @ links.weights[position, :position]
        p = chain.conditional(position, rows, prefixes)
        return np.where(force == 0, p, force > 0)

    return PrefixChain(chain.order, conditional, chain.n_samples)


class LinkedChain(LinearChain):
    """Linear chain that obeys rules: a link adds log-odds beyond all others.

    Parameters
    ----------
    free
        The chain without the rules.
    links
        The rules between its positions.
    """

    def __init__(self, free: LinearChain, links: HardLinks) -> None:
        self._free, self._links = free, links
        bound = CERTAIN + 2 * free.largest_logit
        base, weights = free.base + bound * links.offsets, free.weights + bound * links.weights
        super().__init__(free.order, base, weights)

    def take(self, rows: Rows) -> Self:
        """Chain for some of its instances."""
        taken = super().take(rows)
        taken._free = self._free.take(rows)
        return taken

    def temper(self, temperature: float) -> LinkedChain:
        """Tempered chain under the same rules, which no temperature weakens."""
        return LinkedChain(self._free.temper(temperature), self._links)

    def link_logits(self, Y: Labelsets) -> Floats:
        """Log-odds of each label's value, given those before it; infinite by rules."""
        force = np.empty(Y.shape)
        force[:, self.order] = self._links.force(Y[:, self.order])
        by_rule = np.where((force > 0) == (Y == 1), np.inf, -np.inf)
        return np.where(force == 0, self._free.link_logits(Y), by_rule)
