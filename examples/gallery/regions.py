"""Regions hold the truth as often as they say, whatever the model; a good one has small ones."""

import sys

import numpy as np

import labelsure as ls
from labelsure._runtime.plots import make_figure


def main(path: str) -> None:
    """Ask for several coverages, and measure coverage and size on new instances."""
    data, _ = ls.make_labelsets(2400, 6, dependence=2.5, noise=0.2, random_state=0)
    models = {
        "independent labels": ls.BinaryRelevance(random_state=0),
        "ensemble of chains": ls.EnsembleOfClassifierChains(n_chains=5, random_state=0),
    }
    asked = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
    figure = make_figure(7.6, 3.6)
    left, right = figure.subplots(1, 2)
    left.plot([0.45, 1], [0.45, 1], color="0.7", linewidth=1)
    for (name, model), marker in zip(models.items(), ("o", "s"), strict=True):
        dist = model.fit(data.X[:600], data.Y[:600]).predict_distribution(data.X[600:])
        covered, sizes = [], []
        for coverage in asked:
            region = ls.LabelsetRegion(coverage, score="probability")
            region.fit(dist[:900], data.Y[600:1500])
            answer = region.predict(dist[900:])
            covered.append(answer.contains(data.Y[1500:]).mean())
            sizes.append(answer.n_labelsets.mean())
        left.plot(asked, covered, marker=marker, linestyle=":", label=name)
        right.plot(asked, sizes, marker=marker, linestyle=":", label=name)
    left.set(xlabel="coverage asked for", ylabel="share of truths in the region")
    right.set(xlabel="coverage asked for", ylabel="labelsets in a region, of 64", yscale="log")
    right.set_yticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
    right.minorticks_off()
    left.legend()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(*sys.argv[1:])
