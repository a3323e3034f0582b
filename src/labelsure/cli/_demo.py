"""``labelsure demo``: ten predictions, and how accurate they are expected to be."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from labelsure.cli._console import make_console

N_SHOWN = 10
TARGET = 0.95
METRIC = "jaccard"


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Predict traits of handwritten digits, and say which predictions to trust.

    [bold]Example[/bold]

    labelsure demo
    """
    result = _digits()
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print(result)


def _digits() -> dict[str, Any]:
    """Return ten predictions, and the estimated and actual accuracy of all of them."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import labelsure as ls
    from labelsure.labelsets.rows import to_names

    data = ls.load_dataset("digits")
    train, test = ls.split_dataset(data, 0.4, random_state=0)
    # Quick rather than best: scaled once for all chains, a solver for few features, five chains.
    learner = LogisticRegression(solver="newton-cholesky")
    chains = ls.EnsembleOfClassifierChains(learner, n_chains=5, random_state=0)
    model = ls.AccuracyAwareClassifier(
        make_pipeline(StandardScaler(), chains),
        metric=METRIC,
        target=TARGET,
        random_state=0,
    ).fit(train.X, train.Y)
    assessment, estimate = model.assess(test.X), model.estimate(test.X)
    actual = ls.accuracy(test.Y, assessment.Y_pred, METRIC)
    accepted = np.asarray(assessment.accepted)  # there is a target, so it is not None
    predicted = to_names(assessment.Y_pred[:N_SHOWN], data.label_names)
    true = to_names(test.Y[:N_SHOWN], data.label_names)
    return {
        "metric": METRIC,
        "target": TARGET,
        "predictions": [
            {
                "labels": list(predicted[i]),
                "estimated_accuracy": float(assessment.accuracy[i]),
                "accepted": bool(accepted[i]),
                "true_labels": list(true[i]),
                "actual_accuracy": float(actual[i]),
            }
            for i in range(N_SHOWN)
        ],
        "n_predictions": len(actual),
        "estimated": {"mean": estimate.mean, "low": estimate.low, "high": estimate.high},
        "actual": float(actual.mean()),
        "n_accepted": int(accepted.sum()),
        "actual_of_accepted": float(actual[accepted].mean()) if accepted.any() else None,
    }


def _print(result: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("labels", "estimated", "advice", "actual", title="Traits of handwritten digits")
    for row in result["predictions"]:
        table.add_row(
            ", ".join(row["labels"]) or "none",
            f"{row['estimated_accuracy']:.3f}",
            "accept" if row["accepted"] else "refer",
            f"{row['actual_accuracy']:.3f}",
        )
    console = make_console()
    console.print(table)
    estimated = result["estimated"]
    console.print(
        f"All {result['n_predictions']} predictions, mean {result['metric']} accuracy: estimated "
        f"{estimated['mean']:.3f} ({estimated['low']:.3f} to {estimated['high']:.3f}) without "
        f"labels, actual {result['actual']:.3f}."
    )
    console.print(_acceptance(result))


def _acceptance(result: dict[str, Any]) -> str:
    if result["actual_of_accepted"] is None:
        return f"No prediction is accepted: the target of {result['target']} cannot be promised."
    return (
        f"{result['n_accepted']} are accepted for a target of {result['target']}; their actual "
        f"accuracy is {result['actual_of_accepted']:.3f}."
    )
