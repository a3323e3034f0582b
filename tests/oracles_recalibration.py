"""Loop-only versions of temperatures. Imports nothing from the package."""

import math


def temper(P, power):
    """Every probability to the power, divided by the sum."""
    raised = [p**power for p in P]
    total = math.fsum(raised)
    return [value / total for value in raised]


def temper_links(P, order, power):
    """The joint whose links, P(label | labels before it in the order), have log-odds times power.

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
            taken, left = (yes, no) if code >> order[j] & 1 else (no, yes)
            probability *= taken**power / (taken**power + left**power) if taken + left else 0.0
        tempered.append(probability)
    return tempered


def mean_log(P, power):
    """The mean of log P under P to the power."""
    return math.fsum(q * math.log(p) for p, q in zip(P, temper(P, power), strict=True) if p > 0)


def likelihood_gap(Ps, codes, power):
    """The mean log P of the truths, minus the mean of what P to the power expects of it."""
    of_truth = math.fsum(math.log(P[code]) for P, code in zip(Ps, codes, strict=True))
    return (of_truth - math.fsum(mean_log(P, power) for P in Ps)) / len(Ps)


def mean_log_likelihood(Ps, codes):
    return math.fsum(math.log(P[code]) for P, code in zip(Ps, codes, strict=True)) / len(Ps)


def paired_interval(gains, quantile):
    """The mean of the gains and the ends of its interval: quantile standard errors around it."""
    mean = math.fsum(gains) / len(gains)
    variance = math.fsum((gain - mean) ** 2 for gain in gains) / (len(gains) - 1)
    half = quantile * math.sqrt(variance / len(gains))
    return mean, mean - half, mean + half
