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


def worth(P, answer, open_cost):
    """The mean over all labels and labelsets: 0 for a wrong label, 1 - cost for an open one."""
    total = 0.0
    for labelset, p in zip(oracles.all_labelsets(len(answer)), P, strict=True):
        for y, value in zip(labelset, answer, strict=True):
            total += p * (1 - open_cost if value == OPEN else float(y == value)) / len(answer)
    return total


def best_worth(P, open_cost):
    """The largest worth of all 3**L answers."""
    answers = product((0, 1, OPEN), repeat=oracles.n_labels_of(P))
    return max(worth(P, answer, open_cost) for answer in answers)


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
