"""A small made-up score table with the columns of a real one."""

import numpy as np
import pandas as pd

DATASETS = {"emotions": 3, "scene": 4, "yeast": 5}
CLASSIFIERS = ("ECC", "CT", "Indep")


def make_scores(n=60, datasets=DATASETS, classifiers=CLASSIFIERS, n_repeats=2, seed=0):
    """Independent labels whose decisions are as right as their probabilities say."""
    rng = np.random.default_rng(seed)
    parts = []
    for dataset, n_labels in datasets.items():
        for classifier in classifiers:
            for repeat in range(n_repeats):
                part = cell(rng, n, n_labels)
                parts.append(part.assign(dataset=dataset, classifier=classifier, repeat=repeat))
    return pd.concat(parts, ignore_index=True)


def cell(rng, n, n_labels):
    p = rng.uniform(0.02, 0.98, (n, n_labels)) ** rng.uniform(0.5, 4, (n, 1))
    q = np.maximum(p, 1 - p)
    decision = p > 0.5
    truth = rng.uniform(size=p.shape) < p
    binary_entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p))
    log_top = np.log(q).sum(axis=1)
    log_collision = np.log(p**2 + (1 - p) ** 2).sum(axis=1)
    log_runner_up = log_top + np.log((1 - q) / q).max(axis=1)
    return pd.DataFrame(
        {
            "instance": np.arange(n),
            "n_labels": n_labels,
            "decision": ["".join("01"[int(bit)] for bit in row) for row in decision],
            "method": "exact",
            "top": np.exp(log_top),
            "runner_up": np.exp(log_runner_up),
            "entropy": binary_entropy.sum(axis=1),
            "collision": np.exp(log_collision),
            "log_top": log_top,
            "log_runner_up": log_runner_up,
            "log_collision": log_collision,
            "tp": (decision & truth).sum(axis=1),
            "fp": (decision & ~truth).sum(axis=1),
            "fn": (~decision & truth).sum(axis=1),
            "tn": (~decision & ~truth).sum(axis=1),
            "p_empty": (1 - p).prod(axis=1),
            "expected_exact": np.exp(log_top),
            "expected_hamming": q.mean(axis=1),
            "expected_jaccard": 0.5,
            "expected_f1": 0.5,
        }
    )


def make_features(datasets=DATASETS, n_repeats=2):
    rows = [
        (name, repeat, n_labels, 2**n_labels - repeat, 1 + 3 * k % 5 / 7, 50 + 11 * k * k % 37, 90)
        for k, (name, n_labels) in enumerate(datasets.items())
        for repeat in range(n_repeats)
    ]
    columns = ["dataset", "repeat", "n_labels", "n_labelsets", "cardinality", "n_features"]
    columns.append("n_train")
    return pd.DataFrame(rows, columns=columns)
