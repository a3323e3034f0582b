"""Loop-only versions of what chains compute. Imports nothing from the package."""

import math


def logistic(z):
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def linear_chain_joint(order, base, weights):
    """P(y) for every labelset of one instance, as a list in the order of the codes."""
    n_labels = len(order)
    joint = []
    for code in range(2**n_labels):
        y = [(code >> label) & 1 for label in range(n_labels)]
        probability = 1.0
        for j in range(n_labels):
            logit = base[j]
            for i in range(j):
                logit += weights[j][i] * y[order[i]]
            probability *= logistic(logit if y[order[j]] else -logit)
        joint.append(probability)
    return joint


def mixture_joint(joints, weights=None):
    """The mean of several joints, by weights that sum to one if there are some."""
    if weights is None:
        weights = [1 / len(joints)] * len(joints)
    return [
        sum(w * p for w, p in zip(weights, values, strict=True))
        for values in zip(*joints, strict=True)
    ]
