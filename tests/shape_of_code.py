"""Figures of the code's shape: how many modules, how long, how deep, how many one call passes.

`python tests/shape_of_code.py` prints them; `test_package.py` holds them to the aims below.
"""

import ast
import sys
import threading
from pathlib import Path

import numpy as np

import labelsure as ls

PACKAGE = Path(ls.__file__).parent

AIMS = {
    "import depth": 21,
    "lines of the longest module": 400,
    "lines of the longest function": 60,
    "modules that an estimate passes": 19,
}


def n_modules():
    """How many Python files the package has."""
    return len(list(PACKAGE.rglob("*.py")))


def import_depth():
    """How many modules the longest chain of imports has.

    Imports count that run when a module is loaded: not those inside of functions, which wait until
    they are needed, nor those for types alone.
    """
    paths = {_module_name(path): path for path in PACKAGE.rglob("*.py")}
    imported = {name: set(_imports_of(path, paths)) - {name} for name, path in paths.items()}
    depths = {}

    def depth(name):
        if name not in depths:
            depths[name] = 1 + max(map(depth, imported[name]), default=0)
        return depths[name]

    return max(map(depth, imported))


def _module_name(path):
    parts = (PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def _imports_of(path, known):
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE.name):
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield module if module in known else node.module


def longest_module():
    """How many lines the longest module has."""
    return max(len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py"))


def longest_function():
    """How many lines the longest function has, its docstring aside."""
    return max(
        _n_lines(node)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    )


def _n_lines(function):
    has_docstring = ast.get_docstring(function) is not None
    first = function.body[0]
    docstring = first.end_lineno - first.lineno + 1 if has_docstring else 0
    return function.end_lineno - function.lineno + 1 - docstring


def modules_passed(call):
    """Return the modules of the package, kernels aside, whose functions run during a call."""
    passed = set()

    def note(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("labelsure") and frame.f_code.co_name[0] != "<":
            passed.add(name)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(name for name in passed if not name.startswith("labelsure._kernels"))


def fitted_ensemble():
    """An ensemble with its estimator, and some instances."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    Y = (X[:, :3] + rng.normal(size=(120, 3)) > 0).astype(int)
    classifier = ls.EnsembleOfClassifierChains(n_chains=3, random_state=0)
    model = ls.AccuracyAwareClassifier(classifier, random_state=0)
    return model.fit(X, Y), X, Y


def modules_of_an_estimate():
    """The modules that `estimate` of an ensemble passes, once everything is warm."""
    model, X, _ = fitted_ensemble()
    model.estimate(X)
    return modules_passed(lambda: model.estimate(X))


def modules_of_a_fit():
    """The modules that `fit` of an ensemble with its estimator passes."""
    model, X, Y = fitted_ensemble()
    return modules_passed(lambda: model.fit(X, Y))


def measure():
    """All figures that have an aim, by name."""
    return {
        "import depth": import_depth(),
        "lines of the longest module": longest_module(),
        "lines of the longest function": longest_function(),
        "modules that an estimate passes": len(modules_of_an_estimate()),
    }


if __name__ == "__main__":
    print(f"modules: {n_modules()}")
    for name, value in measure().items():
        print(f"{name}: {value} (at most {AIMS[name]})")
    for title, modules in (("estimate", modules_of_an_estimate()), ("fit", modules_of_a_fit())):
        print(f"\n{title} passes {len(modules)}:", *modules, sep="\n  ")
