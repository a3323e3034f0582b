"""What else could it be? The most probable labelsets of one doubtful prediction."""

import sys

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls


def main(path: str) -> None:
    """Show the digit whose most probable labelset is the least probable."""
    train, test = ls.split_dataset(ls.load_dataset("digits"), 0.5, random_state=0)
    learner = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    chains = ls.EnsembleOfClassifierChains(learner, n_chains=5, random_state=0)
    named = pd.DataFrame(train.Y, columns=train.label_names)
    dist = chains.fit(train.X.to_numpy(), named).predict_distribution(test.X.to_numpy())
    doubtful = int(dist.profile().top.argmin())
    axes = dist.plot(doubtful)
    axes.figure.set_size_inches(6, 4.2)
    axes.figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
