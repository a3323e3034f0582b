"""Times of MAPIE and mulaconf beside ours, in an environment of their own.

    LABELSURE_PEERS=/path/to/python python -m benchmarks mapie mulaconf

Their dependencies exclude ours, so `LABELSURE_PEERS` names the Python of an environment that has
them, NumPy, Numba and the other dependencies of labelsure. Both sides run there, in one process.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import Row

ROOT = Path(__file__).parents[1]


def run_elsewhere(name: str) -> Iterator[Row]:
    """Yield the rows that the other Python measures."""
    if "LABELSURE_PEERS" not in os.environ:
        raise LookupError(f"LABELSURE_PEERS must name the Python of an environment with {name}.")
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    done = subprocess.run(
        [os.environ["LABELSURE_PEERS"], "-m", "benchmarks.conformal_peers", name],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    for line in done.stdout.splitlines()[-1:]:
        yield from (Row(**row) for row in json.loads(line))


BENCHMARKS = {name: partial(run_elsewhere, name) for name in ("mapie", "mulaconf")}

if __name__ == "__main__":
    module = importlib.import_module(f"benchmarks.compare_{sys.argv[1]}")
    found = module.time_yeast(Path(os.environ["LABELSURE_DATA"]))
    print(json.dumps([vars(row) for row in found]))
