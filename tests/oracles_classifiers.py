"""Slow and obvious: joints from fitted base learners one row at a time, and the trellis's order.

Nothing of the package is imported here.
"""

import math
from itertools import product

FLOOR = 2.0**-24


def joint_of_network(learners, order, parents, x):
    """All 2**L probabilities in code order of one instance.

    `parents` lists for each position the earlier positions whose labels the learner was given.
    """
    n_labels = len(order)
    asked = {}
    P = [0.0] * 2**n_labels
    for bits in product((0, 1), repeat=n_labels):  # by position
        probability = 1.0
        for j in range(n_labels):
            given = tuple(bits[i] for i in parents[j])
            if (j, given) not in asked:
                row = [*x, *given]
                (two,) = learners[j].predict_proba([row])
                asked[j, given] = dict(zip(learners[j].classes_.tolist(), two, strict=True))
            # Estimates are never quite 0 or 1.
            probability *= min(max(asked[j, given].get(bits[j], 0.0), FLOOR), 1 - FLOOR)
        code = sum(bit * 2 ** int(label) for bit, label in zip(bits, order, strict=True))
        P[code] = probability
    return P


def joint_of_chain(learners, order, x):
    return joint_of_network(learners, order, [range(j) for j in range(len(order))], x)


def joint_of_independent_learners(learners, x):
    return joint_of_network(learners, range(len(learners)), [()] * len(learners), x)


def mean_joint(joints):
    return [math.fsum(values) / len(joints) for values in zip(*joints, strict=True)]


def neighbours(position, width, density):
    """The left, upper and upper left places, as a set."""
    row, column = position // width, position % width
    found = set()
    if density >= 1 and column > 0:
        found.add(position - 1)
    if density >= 1 and row > 0:
        found.add(position - width)
    if density >= 2 and row > 0 and column > 0:
        found.add(position - width - 1)
    return found


def mutual_information(first, second, weights):
    """In nats, from the four cells of the pair table."""
    total = math.fsum(weights)
    information = 0.0
    for a in (0, 1):
        for b in (0, 1):
            rows = list(zip(first, second, weights, strict=True))
            both = math.fsum(w for u, v, w in rows if u == a and v == b) / total
            left = math.fsum(w for u, v, w in rows if u == a) / total
            right = math.fsum(w for u, v, w in rows if v == b) / total
            if both > 0:
                information += both * math.log(both / (left * right))
    return information


def placement(columns, width, density, corner):
    """The label in each place, greedily by mutual information with the parents' labels."""
    order = [corner]
    weights = [1.0] * len(columns[0])
    for position in range(1, len(columns)):
        best, best_gain = None, None
        for label in range(len(columns)):
            if label in order:
                continue
            gain = math.fsum(
                mutual_information(columns[label], columns[order[place]], weights)
                for place in neighbours(position, width, density)
            )
            if best is None or gain > best_gain + 1e-12:
                best, best_gain = label, gain
        order.append(best)
    return order


def shares_of_answers(answers, label_names):
    """P of all labelsets, the share of answers that name it: [i][code]."""
    table = []
    for row in answers:
        shares = [0.0] * 2 ** len(label_names)
        for labels in row:
            shares[sum(2**j for j, name in enumerate(label_names) if name in labels)] += 1 / len(
                row
            )
        table.append(shares)
    return table


def smoothed_votes(votes, prevalence, strength):
    """(m / (m + a)) share of votes + (a / (m + a)) independent labels, all labelsets."""
    table = []
    for row in votes:
        m, n_labels = len(row), len(prevalence)
        p = [
            (sum(vote[j] for vote in row) + strength * prevalence[j]) / (m + strength)
            for j in range(n_labels)
        ]
        probabilities = []
        for code in range(2**n_labels):
            bits = [code >> j & 1 for j in range(n_labels)]
            product = 1.0
            for bit, q in zip(bits, p, strict=True):
                product *= q if bit else 1 - q
            n_same = sum(vote == bits for vote in row)
            probabilities.append((n_same + strength * product) / (m + strength))
        table.append(probabilities)
    return table
