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


def mean_log_likelihood(Ps, codes):
    return math.fsum(math.log(P[code]) for P, code in zip(Ps, codes, strict=True)) / len(Ps)


def paired_interval(gains, quantile):
    """The mean of the gains and the ends of its interval: quantile standard errors around it."""
    mean = math.fsum(gains) / len(gains)
    variance = math.fsum((gain - mean) ** 2 for gain in gains) / (len(gains) - 1)
    half = quantile * math.sqrt(variance / len(gains))
    return mean, mean - half, mean + half
