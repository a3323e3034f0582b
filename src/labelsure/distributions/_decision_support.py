"""What decisions go by where not all labelsets can be seen: those enumerated, draws for the rest.

Section 6 of `docs/algorithms.md` says how far from the best a decision can be that goes by them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelsure._kernels.threads import Progress
from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import cut_rows
from labelsure._runtime.typing import Indices, LabelNames, Labelsets
from labelsure.distributions._answers import Support
from labelsure.distributions._chain_views import ChainViews, Question
from labelsure.distributions._enumeration import Enumeration, add_greedy
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.labelsets.weighted import WeightedLabelsets


def support_blocks(views: ChainViews) -> Iterator[tuple[Indices, Support]]:
    """Yield some instances at a time with the labelsets that decisions go by.

    "certified" enumerates only; the other engines draw where a short search leaves more unseen
    than the tolerance.
    """
    budget, tolerance = views.engine.budget, views.engine.tolerance
    n_searched, n_drawn = views.share_budget()
    small = views.small_unseen
    if views.engine.name == "certified":
        n_searched, n_drawn, small = budget, 0, 0.0
    elif views.engine.name == "sampled":  # which draws, however small the budget is
        n_searched = min(n_searched, budget // 2)
        n_drawn = budget - n_searched
    n_drawn = min(n_drawn, _limits.DECISION_DRAWS)
    goals = Question(unseen=tolerance, certain=True).goals(views.engine.mass)
    bytes_each = max(1, n_searched + n_drawn) * (8 * views.n_labels + 32)
    progress = Progress(len(views))
    for some in cut_rows(len(views), bytes_each, _limits.DECISION_BYTES):
        rows = np.arange(len(views))[some]
        found = views.search(rows, goals, n_searched, small)
        good = found.meets(goals) if n_drawn else np.ones(len(rows), dtype=bool)
        if good.any():
            yield rows[good], found[np.flatnonzero(good)].support(views.label_names)
        if not good.all():
            yield rows[~good], _draw_rest(views, rows[~good], found[np.flatnonzero(~good)], n_drawn)
        progress.add(len(rows))


def _draw_rest(views: ChainViews, rows: Indices, found: Enumeration, n_drawn: int) -> Support:
    """Let draws stand for what was not found.

    Where they stand may be far from where it is: what is unseen counts once for its own place and
    once for theirs.
    """
    chains = views.chains.take(rows)
    found = add_greedy(chains, found)
    size = max(2, -(-n_drawn // len(chains)))
    sampled = views.sampled(rows, found).draw_more(size)
    draws = sampled.draws.reshape(len(rows), -1, views.n_labels)
    table = _share_rest(found, draws, views.label_names)
    elsewhere = np.minimum(2 * found.unseen_mass, 1.0)
    return Support(
        table, np.ones(len(rows)), elsewhere, found.largest_unseen, sampled.marginal_bounds
    )


def _share_rest(found: Enumeration, draws: Labelsets, label_names: LabelNames) -> LabelsetTable:
    """Return enumerated labelsets with their own probabilities, and draws that share what is left.

    A draw says little of the probability of its own labelset: the mode is one of those enumerated.
    """
    known = found.seen
    instance, place = np.nonzero(~known.contains(draws))
    n_new = np.bincount(instance, minlength=len(known))
    rest = np.maximum(1.0 - known.totals(), 0.0)
    shares = (rest / np.maximum(n_new, 1))[instance]
    drawn = WeightedLabelsets.merge(draws[instance, place], shares, instance, len(known))
    return LabelsetTable.from_weighted(known.join(drawn).normalise(), label_names, known)
