"""Reading ARFF: `read_dataset` against a parser of indices alone, and scipy's reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp
from scipy.io import arff

import labelsure as ls
from benchmarks.measure import Benchmark, Row, core_seconds_in_turn

N_REPEATS = 3
SPARSE = (7395, 1995, 70)  # rows, columns and nonzeros a row, as bibtex
DENSE = (2407, 300)


def write_sparse(path: Path, n_rows: int, n_columns: int, n_nonzero: int) -> None:
    """Write a sparse file of zeros and ones."""
    rng = np.random.default_rng(0)
    lines = ["@relation 'x: -C 5'", *(f"@attribute a{j} {{0,1}}" for j in range(n_columns))]
    lines.append("@data")
    for _ in range(n_rows):
        columns = np.sort(rng.choice(n_columns, n_nonzero, replace=False))
        lines.append("{" + ",".join(f"{j} 1" for j in columns) + "}")
    path.write_text("\n".join(lines), encoding="utf-8")


def write_dense(path: Path, n_rows: int, n_columns: int) -> None:
    """Write a file of numbers, after five labels."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n_rows, n_columns)).round(6).astype(str)
    labels = rng.integers(2, size=(n_rows, 5)).astype(str)
    lines = ["@relation 'x: -C 5'", *(f"@attribute y{j} {{0,1}}" for j in range(5))]
    lines += [f"@attribute a{j} numeric" for j in range(n_columns)]
    lines += ["@data", *map(",".join, np.hstack([labels, values]))]
    path.write_text("\n".join(lines), encoding="utf-8")


def parse_indices(path: Path) -> sp.csr_matrix:
    """Read the columns that are set in each row, and check nothing."""
    _, _, body = path.read_text(encoding="utf-8").partition("@data\n")
    rows = [[int(cell.split()[0]) for cell in line[1:-1].split(",")] for line in body.splitlines()]
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.concatenate(rows)
    return sp.csr_matrix((np.ones(len(columns)), columns, starts))


def read_arff() -> Iterator[Row]:
    """Compare the time of both kinds of files."""
    with TemporaryDirectory() as folder:
        sparse, dense = Path(folder, "sparse.arff"), Path(folder, "dense.arff")
        write_sparse(sparse, *SPARSE)
        write_dense(dense, *DENSE)
        for what, path, other, peer in (
            ("sparse, 7,395 rows of 2,000 columns", sparse, parse_indices, "indices alone"),
            ("dense, 2,407 rows of 305 columns", dense, arff.loadarff, "scipy.io.arff"),
        ):
            calls = [lambda p=path: ls.read_dataset(p), lambda p=path, f=other: f(p)]
            ours, theirs = core_seconds_in_turn(calls, N_REPEATS)
            yield Row(f"read_dataset of ARFF, {what}", ours / theirs, "x", 2, peer=peer)


BENCHMARKS: dict[str, Benchmark] = {"arff": read_arff}
