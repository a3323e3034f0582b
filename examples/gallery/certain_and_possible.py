"""What a region says of single instances: certain labels, possible ones, and those ruled out."""

import sys

import numpy as np

import labelsure as ls
from labelsure._runtime.plots import make_figure

N_SHOWN = 14


def main(path: str) -> None:
    """Mark each label of some digits by what the region says of it, beside the truth."""
    data = ls.load_dataset("digits")
    order = np.random.default_rng(0).permutation(len(data.Y))
    X, Y = np.asarray(data.X)[order], np.asarray(data.Y)[order]
    model = ls.EnsembleOfClassifierChains(n_chains=3, random_state=0).fit(X[:700], Y[:700])
    dist = model.predict_distribution(X[700:])
    region = ls.LabelsetRegion(coverage=0.95).fit(dist[:700], Y[700:1400])
    answer = region.predict(dist[700:])
    truth = Y[1400:]
    shown = np.argsort(-answer.n_labelsets, kind="stable")[:: len(truth) // N_SHOWN][:N_SHOWN]
    axes = make_figure(4.8, 4.2).add_subplot()
    looks = {1: ("s", "C0", "certain"), -1: ("o", "none", "possible"), 0: (".", "0.6", "excluded")}
    for value, (marker, colour, name) in looks.items():
        x, y = np.nonzero(answer.values[shown] == value)
        edge = "C0" if value == -1 else colour
        axes.scatter(x, y, marker=marker, s=90, facecolors=colour, edgecolors=edge, label=name)
    x, y = np.nonzero(truth[shown])
    axes.scatter(x, y, marker="x", s=40, color="black", label="true")
    axes.set_xticks(range(N_SHOWN), [f"{n:g}" for n in answer.n_labelsets[shown]])
    axes.set_yticks(range(dist.n_labels), [name.replace("_", " ") for name in data.label_names])
    axes.set_xlabel("one image a column; below it the\nnumber of labelsets in its prediction set")
    axes.figure.legend(loc="outside upper center", ncols=4, columnspacing=0.6, frameon=False)
    axes.figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
