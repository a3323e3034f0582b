"""Ten predictions on handwritten digits, each with its confidence and expected accuracies.

The ten digit classes become five named traits, so one image has several labels.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from labelsure.labelsets import to_names

TRAITS = {
    "even": {0, 2, 4, 6, 8},
    "prime": {2, 3, 5, 7},
    "at_least_five": {5, 6, 7, 8, 9},
    "has_loop": {0, 6, 8, 9},
    "has_straight_stroke": {1, 4, 5, 7},
}


def main() -> None:
    """Fit, wrap the marginals, print."""
    X, digit = load_digits(return_X_y=True)
    Y = np.array([[d in members for members in TRAITS.values()] for d in digit], dtype=int)
    X_train, X_test, Y_train, Y_test = train_test_split(X, Y, test_size=0.4, random_state=0)
    model = MultiOutputClassifier(make_pipeline(StandardScaler(), LogisticRegression(C=0.01)))
    model.fit(X_train, Y_train)

    dist = ls.as_distribution(model.predict_proba(X_test), label_names=TRAITS)
    Y_pred = ls.decide(dist, metric="jaccard")
    table = ls.confidence(dist)
    for metric in ("exact", "hamming", "jaccard", "f1"):
        table[f"E[{metric}]"] = ls.expected_accuracy(dist, Y_pred, metric=metric)
    actual = ls.accuracy(Y_test, Y_pred, metric="jaccard")
    table["jaccard"] = actual
    table.insert(0, "prediction", [" ".join(labels) or "-" for labels in to_names(Y_pred, TRAITS)])

    with pd.option_context("display.width", 250, "display.max_columns", None):
        print("Ten test images: the Jaccard-optimal labels, the seven candidates, the expected")
        print("accuracies under the model, and the Jaccard accuracy that came out.\n")
        print(table.head(10).to_string(float_format="{:.3f}".format))
    expected = table["E[jaccard]"].mean()
    print(f"\nAll {len(table)} test images: expected Jaccard {expected:.3f}, ", end="")
    print(f"actual {actual.mean():.3f}.")


if __name__ == "__main__":
    main()
