"""The best labelset depends on the metric: how many labels each of them predicts."""

import sys

import numpy as np

import labelsure as ls
from labelsure._runtime.plots import make_figure


def main(path: str) -> None:
    """Decide for instances of different doubt, under each metric, and count the labels."""
    rng = np.random.default_rng(0)
    doubt = np.linspace(0.05, 3, 40)
    counts = {"exact": [], "hamming": [], "f1": [], "jaccard": []}
    for spread in doubt:
        logits = rng.normal(-1.0, spread, size=(200, 8))
        dist = ls.as_distribution(logits, kind="logit")
        for metric, mean_sizes in counts.items():
            mean_sizes.append(ls.decide(dist, metric).labelsets.sum(axis=1).mean())
    axes = make_figure(4.8, 3.6).add_subplot()
    for (metric, mean_sizes), style in zip(counts.items(), ("-", ":", "--", "-."), strict=True):
        axes.plot(doubt, mean_sizes, style, label=metric)
    axes.set(xlabel="spread of the logits", ylabel="labels predicted, of 8")
    axes.set_title("Labels predicted under each metric")
    axes.legend()
    axes.figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
