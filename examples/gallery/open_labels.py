"""Abstain on uncertain labels: how many stay open, and how right the others are."""

import sys

import numpy as np

import labelsure as ls
from labelsure._runtime.plots import make_figure


def main(path: str) -> None:
    """Vary the cost, and measure the share of open labels and the accuracy of the rest."""
    data, _ = ls.make_labelsets(2000, 6, dependence=2.0, noise=0.2, random_state=0)
    model = ls.EnsembleOfClassifierChains(n_chains=3, random_state=0)
    dist = model.fit(data.X[:800], data.Y[:800]).predict_distribution(data.X[800:])
    Y = np.asarray(data.Y)[800:]
    figure = make_figure(4.8, 5.8)
    above, below = figure.subplots(2, 1)
    costs = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
    answers = [ls.decide(dist, "hamming", open_cost=cost).abstentions for cost in costs]
    shares = [answer.is_open.mean() for answer in answers]
    accuracies = [np.nanmean(answer.accuracy(Y, "hamming")) for answer in answers]
    above.plot(costs, shares, marker="o", linestyle=":")
    below.plot(shares, accuracies, marker="o", linestyle=":")
    above.set(xlabel="cost of an open label", ylabel="share of open labels")
    below.set(xlabel="share of open labels", ylabel="accuracy of the others")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
