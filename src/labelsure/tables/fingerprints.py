"""Fingerprints of rows, by which a join by position notices rows that are not those it means."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array, issparse

from labelsure._runtime.typing import FeaturesLike, Indices

FINGERPRINT = "fingerprint"
"""Name of their column."""


def fingerprint_rows(X: FeaturesLike, rows: Indices | None = None) -> list[str]:
    """Fingerprints of instances, of the values that a model sees; they begin with a letter.

    Parameters
    ----------
    X
        (n, d) rows as a model takes them: a DataFrame, a Series of texts, an array or sparse rows.
    rows
        Positions of some rows; None for all.

    Examples
    --------
    >>> import pandas as pd
    >>> one, other = fingerprint_rows(pd.DataFrame({"a": [1, 2], "b": ["x", "x"]}))
    >>> one == other, [one] == fingerprint_rows(pd.DataFrame({"a": [1.0], "b": ["x"]}))
    (False, True)
    """
    import pandas as pd

    chosen = slice(None) if rows is None else rows
    if issparse(X):
        some = csr_array(X)[chosen]
        ends = some.indptr.tolist()
        parts = [
            some.indices[a:b].astype(np.int64).tobytes() + some.data[a:b].astype(float).tobytes()
            for a, b in pairwise(ends)
        ]
        return [f"r{sha256(part).hexdigest()[:16]}" for part in parts]
    frame = pd.DataFrame(X).iloc[chosen]
    columns = {
        str(place): column.astype(float) if column.dtype.kind in "biuf" else column.astype(str)
        for place, (_, column) in enumerate(frame.items())
    }
    hashes = pd.util.hash_pandas_object(pd.DataFrame(columns, frame.index), index=False)
    return [f"r{number:016x}" for number in hashes]
