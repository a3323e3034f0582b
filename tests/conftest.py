"""How all tests run: hypothesis profiles, and what is left out when the JIT is off."""

import os
import random
import signal
import time

# Before numpy is loaded: two workers on two cores, each with two threads that wait for each other
# by counting, take eight times as long for a matrix product.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Batches of tests are small: starting threads for each takes longer than they save. Tests that are
# about threads say how many they want.
os.environ.setdefault("LABELSURE_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(  # `make explore`
    "explore", settings.get_profile("repeatable"), derandomize=False, max_examples=300
)
JIT_IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
# Without the JIT it is indices that are checked, a hundred times slower: fewer examples will do.
settings.register_profile("indices", settings.get_profile("repeatable"), max_examples=8)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "indices" if JIT_IS_OFF else "repeatable")
)

# A shell starts what it runs in the background with interrupts ignored, and commands inherit that:
# the tests of interrupts would see none.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What commands print must not depend on whether kernels happen to be compiled already.
os.environ["LABELSURE_QUIET"] = "1"


EXPLORES = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
SECONDS_TO_EXPLORE = 600
_started = time.monotonic()


def pytest_runtest_setup(item):
    if EXPLORES and time.monotonic() - _started > SECONDS_TO_EXPLORE:
        pytest.skip(f"{SECONDS_TO_EXPLORE} seconds are over; the order of laws is random")


def pytest_collection_modifyitems(config, items):
    if EXPLORES:
        random.Random(str(config.getoption("hypothesis_seed"))).shuffle(items)
    if JIT_IS_OFF:
        skip = pytest.mark.skip(reason="too slow without compiled kernels (NUMBA_DISABLE_JIT)")
        for item in items:
            if item.get_closest_marker("jit_only"):
                item.add_marker(skip)
