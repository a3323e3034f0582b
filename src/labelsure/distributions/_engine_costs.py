"""What each engine costs, in operations, before it runs; and a count of those that were made.

An operation is about a multiplication. Costs follow from the labels, the chains and the number of
labelsets alone, so that every machine chooses the same engine, with any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from labelsure import _limits
from labelsure.distributions._chain_links import Chain, LinearChain

SPLIT_OPERATIONS = 4  # to split a prefix by the odds of its next label
SWEEP_OPERATIONS = 16  # to sum up one probability, its logarithm included
LEARNER_OPERATIONS = 64  # to ask a base learner of any kind for one probability, at the least
DENSE_PER_ENUMERATED = 256
"""How many dense probabilities cost as much as one labelset found by the search, roughly."""


def dense_operations(chains: Sequence[Chain]) -> int:
    """Return what all 2**L probabilities of an instance cost."""
    links = [SPLIT_OPERATIONS if _is_linear(chain) else 2 * LEARNER_OPERATIONS for chain in chains]
    return int((sum(links) + SWEEP_OPERATIONS) << chains[0].order.size)


def draw_operations(chains: Sequence[Chain], n_draws: int) -> int:
    """Return what draws cost, each label of each by its own chain."""
    return sum(map(_path_operations, chains)) * n_draws // len(chains)


def evaluation_operations(chains: Sequence[Chain], n_labelsets: int) -> int:
    """Return what it costs to evaluate labelsets under all chains, with half of the labels set."""
    return sum(map(_path_operations, chains)) * n_labelsets


def _path_operations(chain: Chain) -> int:
    n_labels = chain.order.size
    return n_labels * (n_labels // 2 + 2) if _is_linear(chain) else n_labels * LEARNER_OPERATIONS


def _is_linear(chain: Chain) -> bool:
    return isinstance(chain, LinearChain)


def is_dense_worthwhile(chains: Sequence[Chain]) -> bool:
    """Whether an exact answer is worth its cost."""
    return dense_operations(chains) <= _limits.EXACT_OPERATIONS


def searches_before_dense(n_labels: int) -> int:
    """Return how many labelsets a search may find before it costs more than making all."""
    return int(2**n_labels // DENSE_PER_ENUMERATED)


class OperationCount:
    """How many operations were made."""

    total = 0


_count: ContextVar[OperationCount | None] = ContextVar("operation_count", default=None)


@contextmanager
def count_operations() -> Iterator[OperationCount]:
    """Count the operations that engines make within.

    Examples
    --------
    >>> with count_operations() as count:
    ...     note_operations(3)
    ...     note_operations(4)
    >>> count.total
    7
    """
    count = OperationCount()
    token = _count.set(count)
    try:
        yield count
    finally:
        _count.reset(token)


def note_operations(n_operations: int) -> None:
    """Add to the count, where somebody counts."""
    count = _count.get()
    if count is not None:
        count.total += int(n_operations)
