"""Results of parts, as Parquet in memory."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from labelsure._runtime.runs import decode_parquet, encode_parquet

TABLE = pa.table({"names": [["a"], None, []], "number": [0.5, None, 2.0], "text": ["é", "", None]})

COUNT_THREADS = """
import sys
from pathlib import Path
import pyarrow.dataset
from labelsure._runtime.runs import decode_parquet

def count():
    return len(list(Path("/proc/self/task").iterdir()))

content = sys.stdin.buffer.read()
before = count()
decode_parquet(content)
print(count() - before)
"""


def test_a_table_comes_back():
    assert decode_parquet(encode_parquet(TABLE)).equals(TABLE)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_no_thread_outlives_the_reading_of_a_part():
    """A thread of Arrow that releases Python's bytes while Python ends aborts the process."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT_THREADS],
        input=encode_parquet(TABLE),
        capture_output=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout.strip()) == (0, b"0"), done.stderr
