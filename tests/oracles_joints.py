"""Slow and obvious versions of joints that are made of others: loops over all labelsets.

Nothing of the package is imported here.
"""

from oracles import all_labelsets, code_of, joint_of_independent


def joint_of_smoothed(table, marginals, share):
    """A share of independent labels, and the rest of it by a list of probabilities."""
    independent = joint_of_independent(marginals)
    return [(1 - share) * t + share * p for t, p in zip(table, independent, strict=True)]


def joint_of_powerset(learner, labelsets, x, share, floor):
    """A learner's classes are labelsets; the share of independent labels has their marginals."""
    n_labels = len(labelsets[0])
    (shares,) = learner.predict_proba([x])
    table = [0.0] * 2**n_labels
    for place, value in zip(learner.classes_, shares, strict=True):
        table[code_of(labelsets[place])] += float(value)
    marginals = []
    for j in range(n_labels):
        p = sum(table[code_of(y)] for y in all_labelsets(n_labels) if y[j])
        marginals.append(min(max(p, floor), 1 - floor))
    return joint_of_smoothed(table, marginals, share)


def joint_of_label_counts(odds, weights, n_labels):
    """P(y) is proportional to weights[number of labels] times the odds of the labels it has."""
    products = []
    for code in range(2**n_labels):
        product, size = 1.0, 0
        for j in range(n_labels):
            if code >> j & 1:
                product *= odds[j]
                size += 1
        products.append(product * weights[size])
    return [product / sum(products) for product in products]
