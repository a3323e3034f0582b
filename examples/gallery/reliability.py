"""Does an estimated accuracy come true? Two ways to estimate it, on predictions never seen."""

import sys

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls


def main(path: str) -> None:
    """Fit a classifier to a fifth of the digits, estimators to another, and compare on the rest."""
    train, rest = ls.split_dataset(ls.load_dataset("digits"), 0.8, random_state=0)
    known, new = ls.split_dataset(rest, 0.7, random_state=0)
    learner = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    model = ls.BinaryRelevance(learner).fit(train.X, train.Y)
    before, after = model.predict_distribution(known.X), model.predict_distribution(new.X)
    accuracy = ls.accuracy(new.Y, after.mode(), "jaccard")
    axes = None
    estimator = ls.AccuracyEstimator("jaccard").fit(before, known.Y)
    ways = {
        "expected": ls.expected_accuracy(after, metric="jaccard").value,
        "estimated": estimator.predict(after),
    }
    for kind, values in ways.items():
        found = ls.reliability(values, accuracy, bins=8)
        error = found.expected_calibration_error
        axes = found.plot(axes, label=f"{kind}: error {error:.3f}")
    axes.set_title("Estimated against actual Jaccard")
    axes.figure.set_size_inches(4.8, 3.8)
    axes.figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
