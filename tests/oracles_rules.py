"""Rules among labels as loops over all labelsets."""

from itertools import product

import numpy as np


def all_labelsets(n_labels):
    """All labelsets in the order of their codes: label 0 is the lowest bit."""
    return [bits[::-1] for bits in product((0, 1), repeat=n_labels)]


def is_valid(y, parents, groups):
    """Whether a labelset has the parents of its labels and obeys groups (members, required)."""
    for child, some in enumerate(parents):
        for parent in some:
            if y[child] == 1 and y[parent] == 0:
                return False
    for members, required in groups:
        n_true = sum(y[j] for j in members)
        if n_true > 1:
            return False
        shared = set(parents[members[0]])
        for j in members:
            shared = shared if set(parents[j]) == shared else set()
        if required and n_true == 0 and all(y[parent] == 1 for parent in shared):
            return False
    return True


def restricted(weights, parents, groups):
    """Probabilities proportional to the weights of valid labelsets, 0 for all others."""
    n_labels = len(parents)
    kept = [
        weight if is_valid(y, parents, groups) else 0.0
        for y, weight in zip(all_labelsets(n_labels), weights, strict=True)
    ]
    return np.array(kept) / sum(kept)


def independent_weights(logits):
    """exp(sum of y_j z_j) of all labelsets."""
    return [
        np.exp(sum(one * z for one, z in zip(y, logits, strict=True)))
        for y in all_labelsets(len(logits))
    ]


def ancestors_added(y, parents):
    closed = list(y)
    for _ in y:
        for child, some in enumerate(parents):
            for parent in some:
                if closed[child] == 1:
                    closed[parent] = 1
    return tuple(closed)


def best_valid(P, parents, groups, accuracy):
    """The largest expected accuracy of a valid labelset, by all pairs."""
    labelsets = all_labelsets(len(parents))
    means = [
        sum(p * accuracy(truth, guess) for p, truth in zip(P, labelsets, strict=True))
        for guess in labelsets
        if is_valid(guess, parents, groups)
    ]
    return max(means)


def forced_chain(conditional, order, parents, groups):
    """Probabilities of a chain in which a label is certain once no other value can be valid.

    conditional(position, earlier) is P(1) at a position after (1, position) earlier values.
    """
    n_labels = len(parents)
    valid = [y for y in all_labelsets(n_labels) if is_valid(y, parents, groups)]
    probabilities = []
    for y in all_labelsets(n_labels):
        probability = 1.0
        for position, label in enumerate(order):
            earlier = order[:position]
            possible = [v for v in valid if all(v[k] == y[k] for k in earlier)]
            values = {v[label] for v in possible}
            if not values:
                probability = 0.0
                break
            before = np.array([[y[k] for k in earlier]], dtype=np.int8).reshape(1, position)
            p = conditional(position, before) if len(values) == 2 else float(values.pop())
            probability *= p if y[label] == 1 else 1 - p
        probabilities.append(probability)
    return probabilities


def ruled_log_likelihood(logits, Y, parents, groups):
    """Mean log-probability of labelsets under restricted independent labels, row by row."""
    labelsets, logs = all_labelsets(len(parents)), []
    for z, y in zip(logits, Y, strict=True):
        P = restricted(independent_weights(z), parents, groups)
        logs.append(np.log(P[labelsets.index(tuple(int(one) for one in y))]))
    return logs


def free_labels(y, order, parents, groups):
    """For each place of an order whether the labels before it leave both values possible."""
    valid = [v for v in all_labelsets(len(parents)) if is_valid(v, parents, groups)]
    free = []
    for place, label in enumerate(order):
        possible = [v for v in valid if all(v[k] == y[k] for k in order[:place])]
        free.append(len({v[label] for v in possible}) == 2)
    return free
