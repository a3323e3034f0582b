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
    figure = make_figure(4.8, 5.8)
    above, below = figure.subplots(2, 1)
    above.plot([0.45, 1], [0.45, 1], color="0.7", linewidth=1)
    for (name, model), marker in zip(models.items(), ("o", "s"), strict=True):
        dist = model.fit(data.X[:600], data.Y[:600]).predict_distribution(data.X[600:])
        covered, sizes = [], []
        for coverage in asked:
            region = ls.LabelsetRegion(coverage, score="probability")
            region.fit(dist[:900], data.Y[600:1500])
            answer = region.predict(dist[900:])
            covered.append(answer.contains(data.Y[1500:]).mean())
            sizes.append(answer.n_labelsets.mean())
        above.plot(asked, covered, marker=marker, linestyle=":", label=name)
        below.plot(asked, sizes, marker=marker, linestyle=":", label=name)
    above.set(xlabel="nominal coverage", ylabel="coverage of new rows")
    below.set(xlabel="nominal coverage", ylabel="labelsets in a set, of 64", yscale="log")
    below.set_yticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
    below.minorticks_off()
    above.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
