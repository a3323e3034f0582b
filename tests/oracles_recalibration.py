"""Loop-only versions of temperatures. Imports nothing from the package."""

import math


def temper(P, temperature):
    """Every log-probability divided by the temperature, normalised."""
    raised = [p ** (1 / temperature) for p in P]
    total = math.fsum(raised)
    return [value / total for value in raised]


def temper_marginals(marginals, temperature):
    """Every log-odds divided by the temperature."""
    return [temper([1 - p, p], temperature)[1] for p in marginals]


def temper_links(P, order, temperature):
    """The joint whose links, P(label | labels before it), have log-odds divided by temperature.

    `P` is a list in the order of the codes; each link is a quotient of two sums over all labelsets.
    """
    n_labels = len(order)

    def mass(known):
        """The probability that some labels have these values."""
        return math.fsum(
            p
            for code, p in enumerate(P)
            if all(code >> label & 1 == value for label, value in known)
        )

    tempered = []
    for code in range(len(P)):
        probability = 1.0
        for j in range(n_labels):
            before = [(label, code >> label & 1) for label in order[:j]]
            yes, no = mass([*before, (order[j], 1)]), mass([*before, (order[j], 0)])
            link = temper([no, yes], temperature) if yes + no else [0.0, 0.0]
            probability *= link[code >> order[j] & 1]
        tempered.append(probability)
    return tempered


def sigmoid_losses(logits, truth, weights, slopes, intercepts, pooled, slope_penalty, penalty):
    """What Platt scaling of each label minimises: cross-entropy, and the distance from the pooled.

    Rows are instances, columns labels. `slope_penalty` is in units of the logit's variance.
    """
    losses, n_rows = [], math.fsum(weights)
    for j in range(len(slopes)):
        ones = math.fsum(w for row, w in zip(truth, weights, strict=True) if row[j])
        pairs = [(row[j], w) for row, w in zip(logits, weights, strict=True)]
        mean = math.fsum(w * z for z, w in pairs) / n_rows
        variance = math.fsum(w * (z - mean) ** 2 for z, w in pairs) / n_rows
        total = 0.5 * slope_penalty * variance * (slopes[j] - pooled[0]) ** 2
        total += 0.5 * penalty * (intercepts[j] - pooled[1]) ** 2
        for row, (z, w) in zip(truth, pairs, strict=True):
            target = (ones + 1) / (ones + 2) if row[j] else 1 / (n_rows - ones + 2)
            p = 1 / (1 + math.exp(-(slopes[j] * z + intercepts[j])))
            total -= w * (target * math.log(p) + (1 - target) * math.log(1 - p))
        losses.append(total)
    return losses


def mean_log_likelihood(Ps, codes):
    return math.fsum(math.log(P[code]) for P, code in zip(Ps, codes, strict=True)) / len(Ps)


def paired_interval(gains, quantile):
    """The mean of the gains and the ends of its interval: quantile standard errors around it."""
    mean = math.fsum(gains) / len(gains)
    variance = math.fsum((gain - mean) ** 2 for gain in gains) / (len(gains) - 1)
    half = quantile * math.sqrt(variance / len(gains))
    return mean, mean - half, mean + half
