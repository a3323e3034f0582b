"""Ten predictions on handwritten digits, each with its confidence and expected accuracies.

The ten digit classes become five named traits, so one image has several labels.
"""

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from labelsure.labelsets.lists import to_names


def main() -> None:
    """Fit, wrap the marginals, print."""
    train, test = ls.split_dataset(ls.load_dataset("digits"), 0.4, random_state=0)
    model = MultiOutputClassifier(make_pipeline(StandardScaler(), LogisticRegression(C=0.01)))
    model.fit(train.X, train.Y)

    dist = ls.as_distribution(model.predict_proba(test.X), label_names=test.label_names)
    Y_pred = ls.decide(dist, metric="jaccard").labelsets
    table = ls.confidence(dist)
    for metric in ("exact", "hamming", "jaccard", "f1"):
        table[f"E[{metric}]"] = ls.expected_accuracy(dist, Y_pred, metric=metric).value
    actual = ls.accuracy(test.Y, Y_pred, metric="jaccard")
    table["jaccard"] = actual
    names = to_names(Y_pred, test.label_names)
    table.insert(0, "prediction", [" ".join(labels) or "-" for labels in names])

    with pd.option_context("display.width", 250, "display.max_columns", None):
        print("Ten test images: the Jaccard-optimal labels, the seven candidates, the expected")
        print("accuracies under the model, and the Jaccard accuracy that came out.\n")
        print(table.head(10).to_string(float_format="{:.3f}".format))
    expected = table["E[jaccard]"].mean()
    print(f"\nAll {len(table)} test images: expected Jaccard {expected:.3f}, ", end="")
    print(f"actual {actual.mean():.3f}.")


if __name__ == "__main__":
    main()
