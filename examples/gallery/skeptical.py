"""What all chains of an ensemble agree on: the more chains, the fewer labels, the more below."""

import sys

import numpy as np

import labelsure as ls
from labelsure._runtime.plots import make_figure


def main(path: str) -> None:
    """Count the labels that all members decide alike, and how often these are below."""
    data, _ = ls.make_labelsets(1400, 6, dependence=2.0, noise=0.3, random_state=0)
    X, Y = data.X.to_numpy(), np.asarray(data.Y)
    figure = make_figure(4.8, 5.8)
    above, below = figure.subplots(2, 1)
    numbers, shares, agreed, others = [1, 2, 3, 5, 8], [], [], []
    for n_chains in numbers:
        model = ls.EnsembleOfClassifierChains(n_chains=n_chains, random_state=0)
        dist = model.fit(X[:200], Y[:200]).predict_distribution(X[200:])
        answers = ls.decide(dist, "hamming", skeptical=True).abstentions
        is_right = ls.decide(dist, "hamming").labelsets == Y[200:]
        shares.append(answers.is_open.mean())
        agreed.append(is_right[~answers.is_open].mean())
        others.append(is_right[answers.is_open].mean() if n_chains > 1 else np.nan)
    above.plot(numbers, shares, marker="o", linestyle=":")
    above.set(xlabel="chains", ylabel="labels on which chains differ", ylim=(0, None))
    below.plot(numbers, agreed, marker="o", linestyle=":", label="all agree")
    below.plot(numbers, others, marker="s", linestyle=":", label="they differ")
    below.set(xlabel="chains", ylabel="accuracy of these labels", ylim=(0.4, 1))
    below.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
