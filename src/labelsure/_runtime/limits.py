"""Limits that several modules share: tolerance of ties, sizes of arrays, files and searches.

Each has its reason beside it. Modules read them as `_limits.NAME` when they run, so that a test
can set one for all of them; only `TIE` is compiled into kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from labelsure.errors import TooLargeError

TIE = 1e-12
"""Expectations and log-probabilities closer than this are equal, so that rounding does not pick
between them: sums of a few thousand terms are off by about a tenth of it."""

PROBABILITY_FLOOR = 2.0**-24
"""Estimated probabilities are clipped to [floor, 1 - floor]. A sigmoid in single precision comes no
closer to 1, and a learner that predicts 0 or 1 has far fewer instances than that precision needs;
an exact 0 would exclude labels that may be true. Probabilities computed from logits, and those of
distributions that users construct, are not clipped."""

CHEAP_DENSE_LABELS = 14
"""Number of labels up to which all 2**L probabilities of an instance are computed in any case: they
take about as long as the search for the likely labelsets, and the transform that finds the best
labelset under Jaccard takes a millisecond."""

WRITTEN_LABELS = 16
"""Number of labels up to which the engine "auto" computes all 2**L probabilities of linear chains
where a short search is not enough: that is exact and costs less than draws. Ten chains, flat
probabilities (CAL500 and random), ms an instance, all probabilities against draws: at 16 labels .4
to .5 against .5 to .7 for expected accuracies, .4 to .5 against .2 to 1.2 for marginals; at 18
labels 1.4 against .5 to .9 and 1.3 against .2 to 1.4, and 4.5 against 2.9 for decisions under
Jaccard."""

WRITTEN_FOR_MANY_DRAWS = 18
"""The same for candidates and for decisions other than Jaccard, which need most draws: at 18 labels
1.3 against 1.5 for decisions under Hamming."""

FIRST_SEARCH = 256
"""Labelsets that "auto" searches for before it draws: where these are not enough, a thousand draws
nearly always cost less than a longer search."""

FIRST_DRAWS = 256
"""Draws of the first round, from which the required number is estimated."""

BEAM_WIDTH = 64
"""Prefixes that a beam search keeps in each chain, or twice as many as labelsets are asked for if
these are more. Flat random chains of 17 labels, rows with the right mode at widths 16, 32 and 64:
one chain .93, 1 and 1; three .85, 1 and 1."""

BEAM_LABELSETS = 16
"""Labelsets that are kept of all beams, or twice as many as are asked for if these are more."""

DECISION_DRAWS = 2000
"""Draws for decisions, in addition to enumerated labelsets: with these, decisions under Hamming, F1
and Jaccard are within a few thousandths of the best, and more gain little."""

ALL_PAIRS_LABELS = 12
"""Number of labels up to which the optimum of any metric is computed from all 4**L pairs of
labelsets, in some ten milliseconds for an instance; each further label takes four times as long."""

MAX_ARRAY_BYTES = 2**31
"""The largest array that a method returns, unless `probabilities` is given another limit: a larger
one is usually a mistake in the number of instances or labelsets asked for."""

DENSE_WORK_BYTES = 2**31
"""Memory limit of the work arrays of the dense engine, on all threads together: it sets the number
of labels up to which all probabilities are computed."""

CACHED_JOINT_BYTES = 2**23
"""Probabilities that a thread holds at a time, where that is more than one instance: they stay in
the processor's cache between making and using them."""

SEEN_LABELSETS_BYTES = 2**28
"""Enumerated and drawn labelsets that are held at a time: enough instances for all threads."""

DECISION_BYTES = 2**25
"""The largest work array of a decision, for as many instances as are taken at a time: larger blocks
gain nothing."""

SEARCHED_LABELS = 2**18
"""Limit of labelsets times labels that the search for the best labelset under Jaccard evaluates for
an instance, where no exact algorithm fits: so 1,506 labelsets of 174 labels, about half a second of
a wide trellis. Up to 42 labels the search always ends by itself before. Counted, so that every
machine decides alike."""

FRONTIER_BYTES = 2**30
"""Memory limit of the states of a trellis on one thread: 9 bytes for each label and each state."""

UNIFORM_NUMBERS = 2**22
"""Uniform random numbers that `sample` draws at a time, 32 MiB: the labelsets made of them take an
eighth, and other arrays of a distribution up to twice as much again."""

MAX_FILE_BYTES = 2**30
"""The largest file of data that is read, and the most that a compressed one may become: a file of
some megabytes can hold more than any memory. The field's largest files have a tenth of it."""

MAX_COLUMNS = 200_000
"""Maximum columns of a data file: they are handled one by one, and the widest sets in use have half
as many."""

MAX_LISTED_COLUMNS = 10_000_000
"""Maximum features or labels of a file of sparse rows: the field's largest sets have three million.
One number in such a file stands for names and counts of all of them."""

MAX_REPEATS = 10_000
"""Splits of a data set, and replicates of an analysis: the standard error of a mean over so many
is a hundredth of the spread between them. Each is a file, or a fit, of its own."""

MAX_CHAINS = 10_000
"""Chains of an ensemble: each is a fitted model, and a hundred give nearly the same result."""

MAX_JOBS = 1024
"""Worker processes: each has a copy of the data and some 150 MB of its own."""

MAX_THREADS = 1024
"""More than any machine has cores."""


def check_size(needed: int, content: str, hint: str, max_bytes: int | None = None) -> None:
    """Raise TooLargeError if more than `max_bytes` are needed; None means MAX_ARRAY_BYTES."""
    max_bytes = MAX_ARRAY_BYTES if max_bytes is None else max_bytes
    if needed > max_bytes:
        raise TooLargeError(
            f"{content} need {format_bytes(needed)}, more than the {format_bytes(max_bytes)} "
            f"allowed. {hint}"
        )


def cut_rows(n_rows: int, bytes_each: int, max_bytes: int) -> Iterator[slice]:
    """Yield blocks of rows that take at most `max_bytes` each, or a single row.

    Examples
    --------
    >>> list(cut_rows(5, 8, 16))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, max_bytes // bytes_each)
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def format_bytes(n_bytes: int) -> str:
    """Number of bytes as text, in a unit that suits it.

    Examples
    --------
    >>> format_bytes(3 * 2**29)
    '1.5 GiB'
    """
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    power = (max(n_bytes, 1).bit_length() - 1) // 10
    if power > len(units):  # too large for a float, and perhaps for the digits of an int
        return f"over 10**{int((n_bytes.bit_length() - 41) * math.log10(2))} TiB"
    power = min(power, len(units) - 1)
    return f"{n_bytes / 1024**power:.1f} {units[power]}"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is short; compiled libraries are then not loaded either."""
    return isinstance(error, MemoryError) or "shared object" in str(error)


MORE_MEMORY = (
    "Memory is short: the process may not have as much as it needs. Raise its limit (`ulimit -v`), "
    "end other programs, or use fewer `--jobs`."
)
