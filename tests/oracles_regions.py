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
