"""Possible labels hold the share of true labels that was asked for: the price is their number."""

import sys

import numpy as np

import labelsure as ls
from labelsure._runtime.plots import make_figure


def main(path: str) -> None:
    """Ask for several recalls, and measure recall and the number of possible labels."""
    data, _ = ls.make_labelsets(2400, 10, dependence=2.0, noise=0.2, random_state=0)
    model = ls.EnsembleOfClassifierChains(n_chains=3, random_state=0)
    dist = model.fit(data.X[:600], data.Y[:600]).predict_distribution(data.X[600:])
    Y = np.asarray(data.Y)
    new = Y[1500:] == 1
    some = new.any(axis=1)
    asked = np.array([0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
    figure = make_figure(4.8, 5.8)
    above, below = figure.subplots(2, 1)
    above.plot([0.55, 1], [0.55, 1], color="0.7", linewidth=1)
    recalls, sizes = [], []
    for recall in asked:
        region = ls.LabelsetRegion(recall=recall).fit(dist[:900], Y[600:1500])
        possible = region.predict(dist[900:]).is_possible
        found = (possible & new).sum(axis=1)[some] / new.sum(axis=1)[some]
        recalls.append(found.mean() * some.mean() + (~some).mean())  # no label: none is missed
        sizes.append(possible.sum(axis=1).mean())
    above.plot(asked, recalls, marker="o", linestyle=":")
    below.plot(asked, sizes, marker="o", linestyle=":")
    above.set(xlabel="required recall", ylabel="recall of the possible labels")
    below.set(xlabel="required recall", ylabel="possible labels, of 10")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
