"""Answers with open labels and sets of labelsets, as obvious loops. Nothing of the package."""


def agrees(answer, truth):
    """Whether a truth contradicts none of the decided labels."""
    return all(mine in (-1, theirs) for mine, theirs in zip(answer, truth, strict=True))


def decided_counts(answer, truth):
    """(tp, fp, fn, tn) of the labels that are not open."""
    tp = fp = fn = tn = 0
    for mine, theirs in zip(answer, truth, strict=True):
        if mine == 1 and theirs == 1:
            tp += 1
        elif mine == 1:
            fp += 1
        elif mine == 0 and theirs == 1:
            fn += 1
        elif mine == 0:
            tn += 1
    return tp, fp, fn, tn


def region(P, threshold):
    """The codes of all labelsets with at least this probability."""
    return [code for code, p in enumerate(P) if p >= threshold]


def marked_labels(codes, n_labels):
    """1 for labels that all of these labelsets have, 0 for those that none has, -1 for the rest.

    Of no labelsets at all, nothing is known of any label.
    """
    marks = []
    for j in range(n_labels):
        n_having = sum(code >> j & 1 for code in codes)
        if codes and n_having == len(codes):
            marks.append(1)
        elif codes and n_having == 0:
            marks.append(0)
        else:
            marks.append(-1)
    return marks


def conformal_quantile(scores, coverage):
    """The smallest score that at least (n + 1) coverage of the scores do not exceed."""
    for score in sorted(scores):
        if sum(other <= score for other in scores) >= (len(scores) + 1) * coverage - 1e-9:
            return score
    return float("inf")


def conformal_threshold(values, coverage):
    """The largest value that at least (n + 1) coverage of the values reach."""
    return -conformal_quantile([-value for value in values], coverage)


def closed_labels(marginals, threshold):
    """1 or 0 for labels with one value of at least this probability, -1 for those with two."""
    marks = []
    for p in marginals:
        allowed = [v for v, q in ((0, 1 - p), (1, p)) if q >= threshold]
        marks.append(allowed[0] if len(allowed) == 1 else -1)
    return marks


def least_probable_value(marginals, truth):
    """The smallest probability of a true value, over labels."""
    return min(p if y else 1 - p for p, y in zip(marginals, truth, strict=True))


def missed_share(values, truth, threshold):
    """The share of the true labels whose value is below a threshold; 0 where none is true."""
    true = [value for value, is_true in zip(values, truth, strict=True) if is_true]
    return sum(value < threshold for value in true) / len(true) if true else 0.0


def recall_bound(values, truth, threshold):
    """n / (n + 1) times the mean loss, plus 1 / (n + 1)."""
    n = len(values)
    losses = [missed_share(v, y, threshold) for v, y in zip(values, truth, strict=True)]
    return n / (n + 1) * (sum(losses) / n) + 1 / (n + 1)


def mapie_threshold(values, truth, recall):
    """MAPIE's rule: of 0, 0.01, ..., 0.99 the largest up to which all keep the bound.

    A label is predicted if its value is above the threshold.
    """
    chosen = None
    n = len(values)
    for step in range(100):
        threshold = step / 100
        total = 0.0
        for row, y in zip(values, truth, strict=True):
            true = [value for value, is_true in zip(row, y, strict=True) if is_true]
            total += sum(value <= threshold for value in true) / len(true)
        if n / (n + 1) * (total / n) + 1 / (n + 1) > 1 - recall:
            break
        chosen = threshold
    return chosen


def mixed_votes(P, share):
    """Votes with independent labels of their marginals mixed in, those drawn to 1/2."""
    n_labels = len(P).bit_length() - 1
    marginals = [
        (1 - share) * sum(p for code, p in enumerate(P) if code >> j & 1) + share / 2
        for j in range(n_labels)
    ]
    mixed = []
    for code, p in enumerate(P):
        drawn = 1.0
        for j in range(n_labels):
            drawn *= marginals[j] if code >> j & 1 else 1 - marginals[j]
        mixed.append((1 - share) * p + share * drawn)
    return mixed


def mahalanobis_scores(marginals, codes, matrix):
    """mulaconf's nonconformity: the length of |marginals - labelset| in a metric of past errors.

    `matrix` is the inverse of the covariance of such errors on other data.
    """
    scores = []
    for code in codes:
        error = [abs(p - (code >> j & 1)) for j, p in enumerate(marginals)]
        length = 0.0
        for i, a in enumerate(error):
            for j, b in enumerate(error):
                length += a * matrix[i][j] * b
        scores.append(length**0.5)
    return scores
