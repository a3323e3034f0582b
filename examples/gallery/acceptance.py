"""How accurate the most confident predictions are, if they are chosen by different numbers."""

import sys

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls


def main(path: str) -> None:
    """Accept by a fitted estimate, and by two candidates of the distribution alone."""
    train, rest = ls.split_dataset(ls.load_dataset("digits"), 0.8, random_state=0)
    known, new = ls.split_dataset(rest, 0.7, random_state=0)
    learner = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    model = ls.BinaryRelevance(learner).fit(train.X, train.Y)
    before, after = model.predict_distribution(known.X), model.predict_distribution(new.X)
    accuracy = ls.accuracy(new.Y, after.mode(), "jaccard")
    scores = ls.confidence(after, ["HP", "TG"])
    scores["estimated"] = ls.AccuracyEstimator("jaccard").fit(before, known.Y).predict(after)
    axes = None
    for name in ("estimated", "HP", "TG"):
        axes = ls.accept_curve(scores[name], accuracy).plot(axes, label=name)
    axes.set_title("Mean Jaccard of accepted predictions")
    axes.figure.set_size_inches(4.8, 3.8)
    axes.figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
