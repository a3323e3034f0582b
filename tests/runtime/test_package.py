"""The package as a whole: its names, its imports, its documentation."""

import inspect
import pkgutil
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import labelsure
from labelsure._kernels.threads import (
    _n_available_cores,
    for_rows,
    map_rows,
    n_threads,
    one_blas_thread,
)

PUBLIC = [name for name in labelsure.__all__ if name[0] != "_"]


def test_all_is_sorted_and_can_be_imported():
    assert labelsure.__all__ == sorted(labelsure.__all__)
    assert len(set(labelsure.__all__)) == len(labelsure.__all__)
    assert set(labelsure.__all__) < set(labelsure._HOME_OF)
    for name in labelsure.__all__:
        assert getattr(labelsure, name).__name__ == name
    assert [name for name in dir(labelsure) if name[:2] != "__"] == labelsure.__all__


def test_every_name_of_the_stub_can_be_imported():
    stub = Path(labelsure.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    named = re.findall(r"import \(?\s*(\w+) as \1\b", stub)
    assert set(named) == set(labelsure._HOME_OF)
    assert len(named) == len(set(named)) > 40
    assert all(hasattr(labelsure, name) for name in named)


def test_a_star_import_brings_exactly_these_names():
    code = "names = {}; exec('from labelsure import *', names); print(sorted(names))"
    assert run(code).strip() == str(sorted([*labelsure.__all__, "__builtins__"]))


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="attribute"):
        labelsure.nonsense  # noqa: B018


def test_no_submodule_has_the_name_of_something_public():
    """A lazy import of such a name would be overwritten by its submodule, or the reverse."""
    modules = {module.name for module in pkgutil.iter_modules(labelsure.__path__)}
    assert "decisions" in modules
    assert not modules & set(labelsure.__all__)


def test_every_modules_all_exists():
    for module in pkgutil.walk_packages(labelsure.__path__, "labelsure."):
        loaded = __import__(module.name, fromlist=["_"])
        for name in getattr(loaded, "__all__", []):
            assert hasattr(loaded, name), f"{module.name}.{name}"


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def test_importing_the_package_imports_nothing_heavy():
    heavy = ["sklearn", "numba", "pandas", "numpy", "scipy", "matplotlib"]
    loaded = run(f"import labelsure, sys; print([m for m in {heavy} if m in sys.modules])")
    assert loaded.strip() == "[]"


SPY = """
import builtins, sys
importers, real = set(), builtins.__import__

def spy(name, globals=None, locals=None, fromlist=(), level=0):
    if name.startswith("scipy.stats") or (name == "scipy" and "stats" in (fromlist or ())):
        importers.add((globals or {}).get("__name__", ""))
    return real(name, globals, locals, fromlist, level)

builtins.__import__ = spy
import labelsure
labelsure.AccuracyAwareClassifier
slow = {"numba", "scipy.signal", "sklearn.ensemble", "sklearn.tree"}
print(slow & set(sys.modules), [name for name in importers if name.startswith("labelsure")])
"""


def test_the_classifier_loads_neither_numba_nor_scipy_stats():
    # scikit-learn loads scipy.stats for itself; labelsure must not wait for it anywhere else.
    assert run(SPY).strip() == "set() []"


def test_distributions_load_none_of_the_slow_packages():
    names = ["numba", "scipy.stats", "sklearn", "pandas"]
    code = (
        "import labelsure as ls, sys; ls.accuracy, ls.distributions.ChainMixture, ls.decide;"
        f"print([name for name in {names} if name in sys.modules])"
    )
    assert run(code).strip() == "[]"


def test_confidence_needs_pandas_only_when_it_is_called():
    code = (
        "import labelsure as ls, sys; d = ls.IndependentLabels([[0.5]]); d.profile();"
        "ls.decide(d, 'f1').labelsets; print('pandas' in sys.modules, 'sklearn' in sys.modules)"
    )
    assert run(code).strip() == "False False"


def documented():
    for name in PUBLIC:
        thing = getattr(labelsure, name)
        is_error = inspect.isclass(thing) and issubclass(thing, Exception)
        is_made_by_others = name in ("LabelsetDistribution", "Profile")
        if not is_error and not is_made_by_others:
            yield name


@pytest.mark.parametrize("name", list(documented()))
def test_everything_public_has_an_example(name):
    text = inspect.getdoc(getattr(labelsure, name))
    assert "Parameters\n----------" in text
    assert "Examples\n--------" in text
    assert ">>> " in text


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_method_says_what_it_does(name):
    thing = getattr(labelsure, name)
    assert inspect.getdoc(thing)
    for attribute, member in inspect.getmembers(thing):
        if not attribute.startswith("_") and callable(member) and not hasattr(Exception, attribute):
            assert inspect.getdoc(member), f"{name}.{attribute}"


@pytest.mark.parametrize(("value", "expected"), [("1", 1), ("3", 3), ("1024", 1024)])
def test_a_variable_sets_the_number_of_threads(value, expected, monkeypatch):
    monkeypatch.setenv("LABELSURE_NUM_THREADS", value)
    assert n_threads() == expected


@pytest.mark.parametrize("value", ["0", "-2", "many", "1.5", "²", "1025", "9" * 5000])
def test_a_variable_that_is_no_number_of_threads(value, monkeypatch):
    monkeypatch.setenv("LABELSURE_NUM_THREADS", value)
    message = (
        "The environment variable LABELSURE_NUM_THREADS must be a whole number from 1 to 1024, got "
        f"{value!r}. Unset it"
    )
    with pytest.raises(labelsure.InputError, match=re.escape(message)):
        n_threads()


def test_otherwise_the_cores_that_a_process_may_use(monkeypatch):
    """Of a container's quota of 1.5 of 7 cores, two threads make full use."""
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "")
    context = "joblib.externals.loky.backend.context"
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    monkeypatch.setattr(f"{context}._cpu_count_affinity", lambda n_cores: n_cores)
    for quota, expected in ((7, 7), (2, 2)):
        monkeypatch.setattr(f"{context}._cpu_count_cgroup", lambda n_cores, quota=quota: quota)
        _n_available_cores.cache_clear()
        assert n_threads() == expected
    _n_available_cores.cache_clear()


@pytest.mark.parametrize("n_rows", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("threads", ["1", "2", "8"])
@pytest.mark.parametrize("min_serial_seconds", [0.0, 1e-5, np.inf])
def test_blocks_cover_every_row_once(n_rows, threads, min_serial_seconds, monkeypatch):
    monkeypatch.setenv("LABELSURE_NUM_THREADS", threads)
    monkeypatch.setattr("labelsure._kernels.threads.MIN_SERIAL_SECONDS", min_serial_seconds)
    seen = [0] * n_rows

    def kernel(start, stop, seen):
        for i in range(start, stop):
            seen[i] += 1

    for_rows(kernel, n_rows, into=[seen])
    assert seen == [1] * n_rows


@pytest.mark.parametrize(("min_serial_seconds", "n_blocks"), [(0.0, 12), (np.inf, 4)])
def test_threads_start_where_there_is_enough_work(min_serial_seconds, n_blocks, monkeypatch):
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "3")
    monkeypatch.setattr("labelsure._kernels.threads.MIN_SERIAL_SECONDS", min_serial_seconds)
    workers = map_rows(lambda start, stop: threading.get_ident(), 40)
    assert len(workers) == n_blocks
    assert (threading.get_ident() in workers) == (min_serial_seconds > 0)


@pytest.mark.parametrize("min_serial_seconds", [0.0, np.inf])
def test_a_thread_that_works_for_others_starts_no_more_of_them(min_serial_seconds, monkeypatch):
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "3")
    monkeypatch.setattr("labelsure._kernels.threads.MIN_SERIAL_SECONDS", min_serial_seconds)
    assert set(map_rows(lambda start, stop: n_threads(), 6)) == {1}
    assert n_threads() == 3


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "2")
    monkeypatch.setattr("labelsure._kernels.threads.MIN_SERIAL_SECONDS", 0.0)

    def kernel(start, stop):
        raise RuntimeError("in a thread")

    with pytest.raises(RuntimeError, match="in a thread"):
        for_rows(kernel, 10, into=[])


def test_one_blas_thread_holds_inside_the_context_alone():
    from threadpoolctl import threadpool_info, threadpool_limits

    def blas_threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {2}
