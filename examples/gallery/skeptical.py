"""What all chains of an ensemble agree on: the more chains, the fewer labels, the more right."""

import sys

import numpy as np

import labelsure as ls
from labelsure._runtime.plots import make_figure


def main(path: str) -> None:
    """Count the labels that all members decide alike, and how often these are right."""
    data, _ = ls.make_labelsets(1400, 6, dependence=2.0, noise=0.3, random_state=0)
    X, Y = data.X.to_numpy(), np.asarray(data.Y)
    figure = make_figure(7.6, 3.6)
    left, right = figure.subplots(1, 2)
    numbers, shares, agreed, others = [1, 2, 3, 5, 8], [], [], []
    for n_chains in numbers:
        model = ls.EnsembleOfClassifierChains(n_chains=n_chains, random_state=0)
        dist = model.fit(X[:200], Y[:200]).predict_distribution(X[200:])
        answers = ls.decide(dist, "hamming", skeptical=True).abstentions
        is_right = ls.decide(dist, "hamming").labelsets == Y[200:]
        shares.append(answers.is_open.mean())
        agreed.append(is_right[~answers.is_open].mean())
        others.append(is_right[answers.is_open].mean() if n_chains > 1 else np.nan)
    left.plot(numbers, shares, marker="o", linestyle=":")
    left.set(xlabel="chains", ylabel="share of labels on which they differ", ylim=(0, None))
    right.plot(numbers, agreed, marker="o", linestyle=":", label="all agree")
    right.plot(numbers, others, marker="s", linestyle=":", label="they differ")
    right.set(xlabel="chains", ylabel="labels that the mean decides right", ylim=(0.4, 1))
    right.legend()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main(*sys.argv[1:])
