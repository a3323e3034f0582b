"""Every example in a docstring shows what really happens.

pytest's own `--doctest-modules` would pass over public classes: it looks for classes whose
`__module__` is the module it reads, and theirs is the place that users import them from.
"""

import ast
import doctest
import importlib
import inspect
import pkgutil

import pytest

import labelsure

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
N_EXAMPLES = 58  # docstrings with examples; a lower number means that some are not found


class Finder(doctest.DocTestFinder):
    """Finds what a module defines, wherever its classes say that they live."""

    def _from_module(self, module, thing):
        if inspect.isclass(thing):
            return thing.__qualname__.partition(".")[0] in classes_defined_in(module)
        return super()._from_module(module, thing)


def classes_defined_in(module):
    tree = ast.parse(inspect.getsource(module))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def modules():
    yield labelsure
    for found in pkgutil.walk_packages(labelsure.__path__, "labelsure."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


EXAMPLES = {
    test.name: test for module in modules() for test in Finder().find(module) if test.examples
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example(name, monkeypatch, tmp_path):
    monkeypatch.delenv("LABELSURE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    printed = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    result = runner.run(EXAMPLES[name], out=printed.append, clear_globs=False)
    assert result.failed == 0, "".join(printed)


def test_none_is_lost():
    assert len(EXAMPLES) >= N_EXAMPLES


def test_those_of_public_names_are_among_them():
    found = {name.rpartition(".")[2] for name in EXAMPLES}
    public = {name: inspect.getdoc(getattr(labelsure, name)) for name in labelsure.__all__}
    assert {name for name, text in public.items() if ">>>" in text} <= found
