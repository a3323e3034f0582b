"""Settings for all tests."""

import os

import pytest
from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")


def pytest_collection_modifyitems(items):
    """Skip what would take too long as plain Python."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") == "0":
        return
    skip = pytest.mark.skip(reason="needs the compiled kernels (NUMBA_DISABLE_JIT is set)")
    for item in items:
        if "jit_only" in item.keywords:
            item.add_marker(skip)
