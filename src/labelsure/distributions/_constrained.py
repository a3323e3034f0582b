"""Distributions restricted to valid labelsets, in the form that suits each kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import Self

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.special import logit

from labelsure._runtime.limits import CHEAP_DENSE_LABELS
from labelsure._runtime.typing import Floats, Indices, Labelsets, Mask, Rows
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._chains import Chain, LinearChain, PrefixChain
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._independent_labels import IndependentLabels
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
    listed = list_valid(rules)
    is_forest = max(map(len, rules.parents)) <= 1
    if rules.families is not None and (is_forest or listed is None):
        odds = EffectiveOdds.of(rules.families, logits)
        return odds.log_prob(Y), odds.gradient(Y)
    dist = constrain_logits(logits, rules)
    return dist._log_prob(Y), Y - dist._marginals().value


@singledispatch
def constrain(dist: LabelsetDistribution, rules: LabelRules) -> LabelsetDistribution:
    """Return distributions over valid labelsets alone.

    Joints that fit are restricted and normalised; of other kinds the marginals serve as those of
    independent labels.
    """
    if dist.n_labels <= CHEAP_DENSE_LABELS:
        return constrain(DenseDistribution.from_trusted(dist._probabilities()), rules)
    return constrain_logits(logits_of(dist), rules)


def logits_of(dist: LabelsetDistribution) -> Floats:
    """Log-odds of the marginals, (n, L), finite."""
    return logit(dist.marginals()).clip(-LARGEST_LOGIT, LARGEST_LOGIT)


def constrain_logits(logits: Floats, rules: LabelRules) -> LabelsetDistribution:
    """Independent labels with these log-odds, restricted to valid labelsets."""
    listed = list_valid(rules)
    if listed is not None:
        return ValidLabelsets(listed, logits)
    if rules.families is None:
        raise TooLargeError(
            f"Labels in two groups, or groups across parents, need a list of all valid labelsets: "
            f"there are more than {LISTED:,} for {rules.n_labels} labels. Leave out a group, or "
            "name groups among children of the same parents."
        )
    return make_rule_trellis(rules, logits)


@constrain.register
def _constrain_independent(dist: IndependentLabels, rules: LabelRules) -> LabelsetDistribution:
    return constrain_logits(logits_of(dist), rules)


@constrain.register
def _raise_ancestors(dist: SparseIndependentLabels, rules: LabelRules) -> LabelsetDistribution:
    """Give each ancestor at least the largest probability of the labels below it."""
    if rules.groups:
        raise InputError(
            "`exclusive` and `exactly_one` must be empty for SparseIndependentLabels, got "
            f"{len(rules.groups)} groups. Ancestors alone are raised there."
        )
    listed, above = coo_array(dist.listed_marginals()), rules.implied
    row, label = listed.coords
    reached = above[label]  # for each listed probability, the labels that are at least as probable
    labels, lengths = reached.indices, np.diff(reached.indptr)
    rows, values = np.repeat(row, lengths), np.repeat(listed.data, lengths)
    order = np.lexsort((-values, labels, rows))
    is_largest = np.ones(len(order), dtype=bool)
    is_largest[1:] = (np.diff(rows[order]) > 0) | (np.diff(labels[order]) > 0)
    kept = order[is_largest]
    raised = csr_array((values[kept], (rows[kept], labels[kept])), shape=listed.shape)
    return SparseIndependentLabels(raised, floor=dist._floor)


@constrain.register
def _constrain_dense(dist: DenseDistribution, rules: LabelRules) -> LabelsetDistribution:
    valid = rules.is_valid(from_codes(np.arange(2**dist.n_labels), dist.n_labels))
    P = dist._probabilities().astype(np.float64) * valid
    lost = P.sum(axis=1) <= 0
    if lost.any():
        P[lost] = constrain_logits(logits_of(dist[lost]), rules)._probabilities()
    return DenseDistribution.from_trusted(P / P.sum(axis=1, keepdims=True))


@constrain.register
def _constrain_table(dist: LabelsetTable, rules: LabelRules) -> LabelsetDistribution:
    """Keep the valid labelsets, votes with all ancestors: a vote for a child implies its parent."""
    seen, are_votes = dist.labelsets, dist._n_votes is not None
    rows = rules.close(seen.rows) if are_votes else seen.rows
    valid = rules.is_valid(rows)
    if are_votes and not valid.all():
        warn(
            f"{(~valid).sum():,} of {len(valid):,} distinct answers break a rule also with their "
            "ancestors. They are dropped.",
            UserWarning,
        )
    parts = [(rows[valid], seen.weights[valid], seen.instance[valid])]
    lost = np.flatnonzero(seen.sum(seen.weights * valid) <= 0)
    if lost.size:
        best = constrain_logits(logits_of(dist[lost]), rules)._top(
            min(N_FOR_LOST, 2 ** min(dist.n_labels, 30))
        )
        n_each = best.logs.shape[1]
        some = best.labelsets.reshape(-1, dist.n_labels), best.probabilities.ravel()
        parts.append((*some, np.repeat(lost, n_each)))
    labelsets, weights, instance = (np.concatenate(column) for column in zip(*parts, strict=True))
    merged = WeightedLabelsets.merge(labelsets, weights, instance, len(dist))
    restricted = LabelsetTable.from_weighted(merged.normalise())
    restricted._n_votes = dist._n_votes
    return restricted


@constrain.register
def _constrain_chains(dist: ChainMixture, rules: LabelRules) -> LabelsetDistribution:
    if rules.has_nested_choice:
        raise InputError(
            "`exactly_one` must be a group of labels without parents for chains, got labels below "
            "another one. Use `exclusive`."
        )
    return dist._with_parts([link(chain, rules) for chain in dist._parts], dist._shares, len(dist))


@dataclass(frozen=True)
class HardLinks:
    """Rules as links between positions of a chain: for each position the earlier ones, (L, L).

    Parameters
    ----------
    needs
        The label can only be true if the earlier one is.
    follows
        The label is true if the earlier one is.
    excludes
        The label is false if the earlier one is true.
    completes
        The label is true if none of the earlier ones is: the last member of an exactly-one group.
    """

    needs: Mask
    follows: Mask
    excludes: Mask
    completes: Mask

    @classmethod
    def of(cls, rules: LabelRules, order: Indices) -> HardLinks:
        """Links for labels in some order; those that follow from others are left out."""
        places = np.ix_(order, order)
        implies = (rules.implied.toarray() > 0)[places]
        np.fill_diagonal(implies, False)
        earlier = np.tri(len(order), k=-1, dtype=bool)
        completes = np.zeros(earlier.shape, dtype=bool)
        position = np.argsort(order)
        for group in rules.groups:
            if group.required:
                *others, last = np.sort(position[list(group.members)])
                completes[last, others] = True
        return cls(
            _drop_covered(implies & earlier, implies),
            _drop_covered(implies.T & earlier, implies.T),
            _drop_covered(rules.excluded[places] & earlier, implies.T),
            completes,
        )

    def leave_open(self, Y: Labelsets) -> Mask:
        """Whether the earlier positions of a labelset force no value, (n, L), parents first."""
        has = Y.astype(np.int32)
        forced = (1 - has) @ self.needs.T + has @ self.excludes.T > 0
        return ~forced & ~self.completes.any(axis=1)


def _drop_covered(links: Mask, covers: Mask) -> Mask:
    """Links of a position to earlier ones, without those that another link of it covers."""
    return links & ~((links.astype(np.int32) @ covers.astype(np.int32)) > 0)


def link(chain: Chain, rules: LabelRules) -> Chain:
    """Return a chain whose conditionals obey the rules, whatever its order.

    A label is forced by those before it. As implications and exclusions are closed transitively, no
    valid prefix is a dead end. Linear chains stay linear: a rule adds log-odds beyond all others.
    """
    links = HardLinks.of(rules, chain.order)
    if isinstance(chain, LinearChain):
        return LinkedChain(chain, links)

    def conditional(position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        before, p = prefixes > 0, chain.conditional(position, rows, prefixes)
        needs, completes = links.needs[position, :position], links.completes[position, :position]
        if completes.any():
            p = np.where(before[:, completes].any(axis=1), p, 1.0)
        p = np.where(before[:, links.follows[position, :position]].any(axis=1), 1.0, p)
        is_excluded = before[:, links.excludes[position, :position]].any(axis=1)
        return np.where(is_excluded | ~before[:, needs].all(axis=1), 0.0, p)

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
        self._free, self._hard = free, links
        self._largest = free.largest_logit
        bound = CERTAIN + 2 * self._largest
        is_last = np.asarray(links.completes.any(axis=1))
        base = free.base + bound * (is_last * 1.0 - links.needs.sum(axis=1))
        change = links.needs + links.follows * 1.0 - links.excludes * (1.0 + is_last)[:, np.newaxis]
        super().__init__(free.order, base, free.weights + bound * change)

    def take(self, rows: Rows) -> Self:
        """Return the chain for some of its instances."""
        taken = super().take(rows)
        taken._free = self._free.take(rows)
        return taken

    def temper(self, temperature: float) -> LinkedChain:
        """Return the tempered chain under the same rules, which no temperature weakens."""
        return LinkedChain(self._free.temper(temperature), self._hard)

    def link_logits(self, Y: Labelsets) -> Floats:
        """Return the log-odds of each label's value, given those before it; infinite by rules."""
        logits = super().link_logits(Y)
        is_forced = np.abs(logits) >= CERTAIN + self._largest
        return np.where(is_forced, np.copysign(np.inf, logits), logits)
