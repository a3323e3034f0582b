"""Answers that leave labels open, as obvious loops; nothing of the package is imported here.

An answer is a tuple of 1, 0 and -1, which means open. A distribution is a list of 2**L
probabilities in the order of the codes.
"""

from itertools import product

import oracles

OPEN = -1


def decided(labelset, answer):
    """The values of a labelset at the labels that an answer decides."""
    return tuple(y for y, value in zip(labelset, answer, strict=True) if value != OPEN)


def expected_decided(P, answer, metric, empty=1.0):
    """The mean accuracy of the decided labels; None where nothing is decided."""
    mine = decided(answer, answer)
    if not mine:
        return None
    total = 0.0
    for labelset, p in zip(oracles.all_labelsets(len(answer)), P, strict=True):
        total += p * oracles.accuracy(decided(labelset, answer), mine, metric, empty)
    return total


def worth(P, answer, metric, empty, costs):
    """What an answer is worth: its mean accuracy minus the cost of its open labels.

    Hamming is counted over all labels, an open one not being wrong; two empty labelsets are worth
    `empty` only if all labels are decided.
    """
    n_labels, n_open = len(answer), sum(value == OPEN for value in answer)
    if n_open == n_labels:
        mean = {"exact": 1.0, "hamming": 1.0}.get(metric, 0.0)
    else:
        mean = expected_decided(P, answer, metric, empty if n_open == 0 else 0.0)
        if metric == "hamming":
            mean = 1 - (1 - mean) * (n_labels - n_open) / n_labels
    return mean - costs[n_open]


def all_answers(n_labels):
    return product((0, 1, OPEN), repeat=n_labels)


def best_worth(P, metric, empty, costs):
    """The largest worth of all 3**L answers."""
    n_labels = oracles.n_labels_of(P)
    return max(worth(P, answer, metric, empty, costs) for answer in all_answers(n_labels))


def agreed_labels(members):
    """1 or 0 where the marginal of every member is on that side of a half, else open."""
    answer = []
    for j in range(oracles.n_labels_of(members[0])):
        marginals = [oracles.marginals(P)[j] for P in members]
        if min(marginals) > 0.5 + oracles.TIE:
            answer.append(1)
        elif max(marginals) < 0.5 - oracles.TIE:
            answer.append(0)
        else:
            answer.append(OPEN)
    return tuple(answer)


def least_expected(members, labelset, metric, empty):
    return min(oracles.expected_accuracy(P, labelset, metric, empty) for P in members)


def best_least_expected(members, metric, empty):
    """The largest least expected accuracy of any labelset over the members."""
    labelsets = oracles.all_labelsets(oracles.n_labels_of(members[0]))
    return max(least_expected(members, labelset, metric, empty) for labelset in labelsets)
