"""The paper's worked example: eight labelsets, their probabilities and expected accuracies."""

from __future__ import annotations

import numpy as np

from labelsure.distributions import DenseDistribution
from labelsure.report._formats import PrintedTable, Row, TableEntry


def worked_example_table() -> PrintedTable:
    """Return the paper's example: a distribution over three labels with its expectations."""
    codes = np.arange(8)
    # The paper counts with its first label as the highest bit.
    labelsets = (codes[:, np.newaxis] >> np.array([2, 1, 0])) & 1
    probabilities = np.zeros(8)
    for code, probability in ((1, 1 / 3), (2, 1 / 4), (4, 1 / 4), (6, 1 / 6)):
        probabilities[code] = probability
    ours = labelsets @ (1 << np.arange(3))
    joint = np.zeros(8)
    joint[ours] = probabilities
    dist = DenseDistribution(np.tile(joint, (8, 1)))
    names = ("hamming", "exact", "jaccard")
    expected = {name: dist.expected(name, labelsets, empty=0.0).value for name in names}
    rows: list[Row] = []
    for i, labelset in enumerate(labelsets):
        cells = [
            TableEntry(f"{expected[m][i]:.3f}", bold=bool(np.argmax(expected[m].round(9)) == i))
            for m in names
        ]
        rows.append([str(i + 1), *map(str, labelset), f"{probabilities[i]:.3f}", *cells])
    marginals = [f"{p:.2f}" for p in dist.marginals()[0]]
    rows.append(["P(y_j|x)", *marginals, "", "", "", ""])
    columns = ["i", "y1", "y2", "y3", "P(Y=y_i|x)", "E[HS]", "E[EM]", "E[JS]"]
    return PrintedTable(
        "worked_example", "A distribution and its expected accuracies", columns, rows
    )
