"""Slow and obvious twins of what the datasets package computes. Imports nothing from it."""

import gzip
import math


def read_plain_arff(path):
    """Names and rows of strings of a compressed ARFF file without quotes in its rows."""
    names, rows, in_data = [], [], False
    with gzip.open(path, "rt") as file:
        for line in file:
            line = line.strip()
            if not line or line.startswith("%"):
                continue
            if in_data and line.startswith("{"):
                row = ["0"] * len(names)
                for pair in line[1:-1].split(","):
                    if pair.strip():
                        index, value = pair.split()
                        row[int(index)] = value
                rows.append(row)
            elif in_data:
                rows.append([value.strip() for value in line.split(",")])
            elif line.lower().startswith("@attribute"):
                names.append(line.split()[1].strip("'\""))
            elif line.lower().startswith("@data"):
                in_data = True
    return names, rows


def chain_probability(labelset, logits, dependence):
    """P(y | x) of a chain where a label's logit moves with the label before it."""
    probability = 1.0
    for j, y in enumerate(labelset):
        logit = logits[j]
        if j > 0:
            logit += dependence if labelset[j - 1] == 1 else -dependence
        p = 1 / (1 + math.exp(-logit))
        probability *= p if y == 1 else 1 - p
    return probability
