"""Text files of the extreme-classification repository, which list the nonzero values of each row.

The first line is "n_instances n_features n_labels"; each further line is an instance in the
svmlight format with several labels, "l1,l2,... f1:v1 f2:v2 ...". Indices start at 0.
"""

from __future__ import annotations

import io

import numpy as np
from scipy import sparse

from labelsure._runtime import limits as _limits
from labelsure._runtime.storage import first_line
from labelsure.errors import DataError, TooLargeError
from labelsure.tables.datasets._dataset import Dataset

MAX_HEADER_BYTES = 100
"""Three numbers take less."""


def read_sparse_text(content: bytes, where: str) -> Dataset:
    """Return the data set in the decompressed text, with sparse features and labelsets.

    `where` is the name of the file, for the messages.
    """
    from sklearn.datasets import load_svmlight_file  # slow to import

    lines = io.BytesIO(content.removeprefix(b"\xef\xbb\xbf"))
    n_rows, n_features, n_labels = _read_header(lines.readline(), where)
    try:
        X, listed = load_svmlight_file(
            lines, n_features=n_features, multilabel=True, zero_based=True
        )
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{where} must have rows such as `4,7 0:1.5 2:1`, with features in ascending order: "
            f"{first_line(error)}. Fix or drop that row."
        ) from error
    if X.shape[0] != n_rows:
        raise DataError(
            f"{where} must have {n_rows} rows, as its first line says, got {X.shape[0]}; blank "
            "rows do not count. Drop blank rows and correct the first line, or fetch a file that "
            "was cut off again."
        )
    labels = np.array([label for row in listed for label in row], dtype=np.float64)
    is_known = (labels >= 0) & (labels < n_labels) & (labels == np.floor(labels))
    if not is_known.all():
        raise DataError(
            f"{where} must list labels from 0 to {n_labels - 1}, as its first line says, got "
            f"{labels[~is_known][0]:g}. Correct the first line, or fix or drop that row."
        )
    ends = np.cumsum([0, *map(len, listed)])
    Y = sparse.csr_array(
        (np.ones(len(labels), dtype=np.int8), labels.astype(np.int64), ends),
        shape=(n_rows, n_labels),
    )
    if not Y.has_canonical_format:
        raise DataError(f"{where} must list each label of a row once. Drop repeated labels.")
    return Dataset(X, Y)


def _read_header(line: bytes, where: str) -> list[int]:
    words = line[:MAX_HEADER_BYTES].split()
    if len(words) != 3 or not all(word.isdigit() and int(word) for word in words):
        raise DataError(
            f"The first line of {where} must say how many instances, features and labels there "
            "are, three whole numbers from 1 on such as `1000 500 90`, got "
            f"{line[:40].decode(errors='replace').strip()!r}."
        )
    sizes = [int(word) for word in words]
    if max(sizes[1:]) > _limits.MAX_LISTED_COLUMNS:
        raise TooLargeError(
            f"The first line of {where} must say at most {_limits.MAX_LISTED_COLUMNS} features or "
            f"labels, got {max(sizes[1:])}. Leave out those that are not needed."
        )
    return sizes
