"""Does agreement of sampled answers mean that they are right? Votes against estimated F1."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import labelsure as ls


def main(path: str) -> None:
    """Draw five answers a row from an overconfident classifier, calibrate them, and compare."""
    data = ls.load_dataset("digits")
    labels = list(data.label_names)
    order = np.random.default_rng(0).permutation(len(data.Y))
    train, rows = order[:200], order[200:]
    llm = ls.EnsembleOfClassifierChains(n_chains=5, random_state=0)
    joint = llm.fit(data.X.iloc[train], data.Y[train]).predict_distribution(data.X.iloc[rows])
    answers = [
        [[tag for tag, bit in zip(labels, bits, strict=True) if bit] for bits in draws]
        for draws in joint.temper(0.6).sample(5, random_state=0)
    ]
    truth = pd.DataFrame(np.asarray(data.Y)[rows], columns=labels)
    model = ls.AccuracyAwareClassifier(
        ls.PrecomputedProbabilities("votes"), metric="f1", target=0.85, random_state=0
    ).fit(answers[:300], truth[:300])
    found = model.assess(answers[300:])
    f1 = ls.accuracy(truth[300:], found.Y_pred, "f1")
    votes = ls.LabelsetTable.from_samples(answers[300:], labels)
    scores = {
        "share of agreeing answers": votes.top(1).probabilities[:, 0],
        "estimated F1": found.accuracy,
    }
    _, ax = plt.subplots(figsize=(4.8, 4.4), layout="constrained")
    for (name, score), marker in zip(scores.items(), "so", strict=True):
        bins = np.array_split(np.argsort(score, kind="stable"), 8)
        means = [(score[rows].mean(), f1[rows].mean()) for rows in bins]
        ax.plot(*np.transpose(means), f"{marker}-", label=name)
    ax.axline((0.5, 0.5), slope=1, color="gray", linewidth=1, label="calibrated")
    ax.set(xlabel="confidence of an eighth of the tickets", ylabel="their actual mean F1")
    ax.legend()
    plt.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
