"""Slow and obvious versions of joints that are made of others: loops over all labelsets.

Nothing of the package is imported here.
"""

from oracles import all_labelsets, code_of, joint_of_independent


def joint_of_blocks(blocks, n_labels):
    """The joint of blocks of labels, each with its own list of probabilities."""
    P = []
    for labelset in all_labelsets(n_labels):
        probability = 1.0
        for labels, block in blocks:
            probability *= block[code_of([labelset[label] for label in labels])]
        P.append(probability)
    return P


def joint_of_smoothed(table, marginals, share):
    """A share of independent labels, and the rest of it by a list of probabilities."""
    independent = joint_of_independent(marginals)
    return [(1 - share) * t + share * p for t, p in zip(table, independent, strict=True)]
