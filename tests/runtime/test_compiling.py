"""Kernels are compiled for one form of their arguments, cached where that can be, and announced."""

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numba.core import event
from scored_files import make_model, make_rows

import labelsure as ls
import labelsure._kernels
from labelsure._kernels import compiling
from labelsure._kernels.compiling import MESSAGE, NOT_CACHED, Notice
from labelsure._kernels.threads import as_input
from labelsure._runtime.progress import QUIET_VARIABLE
from labelsure.metrics.registry import F1, JACCARD

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(8), size=6)
MARGINALS = RNG.random((6, 3))
TABLES = [RNG.random((6, 2**n)) for n in (0, 1, 1)]


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


FORMS = {
    "read-only": read_only,
    "by columns": np.asfortranarray,
    "with gaps": lambda array: np.repeat(array, 2, axis=0)[::2],
}


def ask_everything(form):
    """Ask every kind, made of arrays in this form, what it can be asked."""
    chains = [
        ls.distributions.LinearChain(
            form(np.array([2, 0, 1])), form(MARGINALS), form(np.ones((3, 3)))
        )
    ] * 2
    answers = []
    for dist in (
        ls.DenseDistribution(form(P)),
        ls.IndependentLabels(form(MARGINALS)),
        ls.distributions.TrellisDistribution(
            [form(table) for table in TABLES], [[], [0], [1]], [0, 1, 2]
        ),
        ls.distributions.ChainMixture(chains),
        ls.distributions.ChainMixture(chains, engine="certified"),
        ls.LabelsetTable(
            form(np.tile([[1, 0, 1], [0, 0, 1]], (6, 1, 1))), form(np.full((6, 2), 0.5))
        ),
    ):
        answers += [
            *(ls.decide(dist, metric).labelsets for metric in ("jaccard", "f1")),
            dist._summary([JACCARD, F1], 1.0).expected["jaccard"].value,
            dist.marginals(),
            dist.top(2).probabilities,
            dist.sample(2, random_state=0),
            dist.expected("jaccard", form(dist.mode())).value,
        ]
    return answers


def compiled_signatures():
    signatures = set()
    for module in pkgutil.iter_modules(labelsure._kernels.__path__, "labelsure._kernels."):
        for name, member in vars(importlib.import_module(module.name)).items():
            signatures |= {(name, signature) for signature in getattr(member, "signatures", ())}
    return signatures


@pytest.mark.jit_only
@pytest.mark.parametrize("form", FORMS)
def test_no_kernel_is_compiled_anew_for_another_form_of_the_same_arrays(form):
    expected = ask_everything(lambda array: array)
    before = compiled_signatures()
    answers = ask_everything(FORMS[form])
    assert compiled_signatures() == before
    for answer, value in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(answer, value)


def test_what_a_kernel_reads_cannot_be_written_by_it():
    mine = np.ones((2, 3))
    given, (inner, number) = as_input(mine.T), as_input((mine, 4))
    assert given.flags.c_contiguous
    assert not given.flags.writeable
    assert np.shares_memory(inner, mine)
    assert not inner.flags.writeable
    assert number == 4
    assert mine.flags.writeable


@pytest.fixture(autouse=True)
def _not_silent(monkeypatch):
    monkeypatch.delenv(QUIET_VARIABLE, raising=False)


def compile_event(folder, module="labelsure._kernels.some"):
    """An event of numba that a function is compiled."""
    stats = SimpleNamespace(cache_path=None if folder is None else str(folder))
    compiled = SimpleNamespace(py_func=SimpleNamespace(__module__=module), stats=stats)
    return event.Event("numba:compile", event.EventStatus.START, {"dispatcher": compiled})


@pytest.mark.parametrize(("quiet", "said"), [("", MESSAGE + "\n"), ("1", "")])
def test_compiling_is_announced_once_for_all_processes(quiet, said, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv(QUIET_VARIABLE, quiet)
    for notice in (Notice(), Notice()):  # as two processes have them
        notice.notify(compile_event(tmp_path))
        notice.notify(compile_event(tmp_path))
    assert capsys.readouterr().err == said


def test_compiling_is_announced_again_long_after(capsys, tmp_path):
    mark = tmp_path / ".announced"
    mark.touch()
    os.utime(mark, (0, 0))
    Notice().notify(compile_event(tmp_path))
    assert capsys.readouterr().err == MESSAGE + "\n"


def test_compiling_is_announced_where_no_mark_can_be_left(capsys, tmp_path):
    Notice().notify(compile_event(tmp_path / "missing"))
    assert capsys.readouterr().err == MESSAGE + "\n"


def test_each_run_says_that_no_folder_for_the_cache_is_writable(capsys, monkeypatch):
    notice = Notice()
    notice.notify(compile_event(None))
    notice.notify(compile_event(None))
    assert capsys.readouterr().err == NOT_CACHED + "\n"
    assert "NUMBA_CACHE_DIR" in NOT_CACHED
    monkeypatch.setattr(compiling, "parent_process", lambda: "the process of the command")
    Notice().notify(compile_event(None))
    assert capsys.readouterr().err == ""


def test_functions_of_others_are_not_announced(capsys, tmp_path):
    notice = Notice()
    notice.notify(compile_event(tmp_path, "labelsure_extensions.kernels"))
    assert capsys.readouterr().err == ""
    notice.notify(compile_event(tmp_path))
    assert capsys.readouterr().err == MESSAGE + "\n"


HELPERS = """
from labelsure._kernels.compiling import inner

@inner
def add(a, b):
    return a + b
"""

KERNELS = """
from labelsure._kernels.compiling import kernel
from package_of_kernels.helpers import add

@kernel
def add_one(a):
    return add(a, 1)
"""


@pytest.fixture
def import_module(tmp_path, monkeypatch):
    """Return a function that imports a module with a kernel, each time as a new process would."""
    folder = tmp_path / "package_of_kernels"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "stored"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget():
        for name in [name for name in sys.modules if name.startswith("package_of_kernels")]:
            del sys.modules[name]

    def load(helpers=HELPERS):
        (folder / "helpers.py").write_text(helpers)
        forget()
        return importlib.import_module("package_of_kernels.kernels")

    yield load
    forget()


@pytest.mark.jit_only
def test_a_kernel_is_cached_until_a_file_that_it_imports_changes(import_module):
    for helpers, value, n_hits in (
        (HELPERS, 3, 0),
        (HELPERS, 3, 1),
        (HELPERS.replace("+", "-"), 1, 0),
    ):
        module = import_module(helpers)
        assert module.add_one(2) == value
        assert sum(module.add_one.stats.cache_hits.values()) == n_hits


@pytest.fixture
def without_cache(tmp_path, monkeypatch):
    """The environment of a process that can write neither to the package nor to a home.

    Files in place of folders, as root may write to any folder.
    """
    package = tmp_path / "read_only" / "labelsure"
    shutil.copytree(Path(ls.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *filter(Path.is_dir, package.rglob("*"))]:
        (folder / "__pycache__").touch()
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return {
        **kept,
        "HOME": os.devnull,
        "XDG_CACHE_HOME": os.devnull,
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run_python(*arguments, env):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=env, check=False
    )


@pytest.mark.jit_only
def test_kernels_are_compiled_without_a_cache(without_cache):
    code = "import labelsure as ls; print(ls.DenseDistribution([[0.1, 0.2, 0.3, 0.4]]).top(1))"
    done = run_python("-c", code, env=without_cache)
    assert done.stderr == NOT_CACHED + "\n"
    assert "[[[1, 1]]]" in done.stdout


@pytest.mark.slow  # all kernels of a command are compiled, for 9 s each
@pytest.mark.jit_only
def test_commands_run_without_a_cache(without_cache, tmp_path):
    make_model().save(tmp_path / "model.labelsure")
    make_rows(50).to_csv(tmp_path / "new.csv", index=False)
    score = ["score", tmp_path / "model.labelsure", tmp_path / "new.csv"]
    for command in (["demo"], [*score, "--out", tmp_path / "out.csv", "--jobs", 1]):
        done = run_python("-m", "labelsure", *command, env=without_cache)
        assert (done.returncode, done.stderr) == (0, NOT_CACHED + "\n")
    assert len(pd.read_csv(tmp_path / "out.csv")) == 50
