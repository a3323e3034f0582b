"""Names of other libraries that these do not promise: a test fails by the library's version.

Each is used in one place of ours, which the error names. Other tests would fail as well, at places
that say nothing of the cause.
"""

import threading
from importlib import import_module
from importlib.metadata import version

import pytest
import typer
from joblib import Parallel, delayed

from labelsure._runtime.processes import POOL_THREADS, end_workers
from labelsure.cli._app import ArgumentError
from labelsure.saving._schema import TRUSTED_LOADERS

TRUSTED_ELSEWHERE = [name for name in TRUSTED_LOADERS if not name.startswith("labelsure.")]


def changed(library, name, place):
    return f"{library} {version(library)} has no {name} any more, which {place} uses."


def test_typer_has_a_base_class_of_errors_about_arguments():
    note = changed("typer", "BadParameter.__mro__[2] with `format_message`", "cli/_app.py")
    assert issubclass(typer.BadParameter, ArgumentError), note
    assert ArgumentError("text").format_message() == "text", note
    assert ArgumentError not in (Exception, BaseException, object, typer.BadParameter), note


def test_joblib_keeps_one_pool_under_known_names():
    note = changed("joblib", "pool or thread of that name", "_runtime/processes.py")
    assert Parallel(n_jobs=2, backend="loky")(delayed(abs)(x) for x in (-1, -2)) == [1, 2]
    loky = import_module("joblib.externals.loky.reusable_executor")
    assert loky._executor is not None, note
    assert {thread.name for thread in threading.enumerate()} >= {*POOL_THREADS}, note
    end_workers()
    assert loky._executor is None or loky._executor._flags.shutdown, note
    assert not {thread.name for thread in threading.enumerate()} & {*POOL_THREADS}, note


@pytest.mark.parametrize("name", sorted(TRUSTED_ELSEWHERE))
def test_types_in_saved_models_have_the_names_under_which_they_are_trusted(name):
    library = {"sklearn": "scikit-learn"}.get(name.partition(".")[0], name.partition(".")[0])
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module), attribute, None)
    full_name = f"{found.__module__}.{found.__qualname__}" if isinstance(found, type) else ""
    assert full_name == name, changed(library, name, "saving/_schema.py")
