"""Figures of the code's shape: how many modules, how long, how deep, how many one call passes.

`python tests/shape_of_code.py` prints them; `test_package.py` holds them to the aims below.
"""

import ast
import sys
import threading
from pathlib import Path

import grimp
import numpy as np

import labelsure as ls

PACKAGE = Path(ls.__file__).parent

AIMS = {
    "modules": 99,
    "import depth": 21,
    "lines of the longest module": 400,
    "lines of the longest function": 60,
    "modules that an estimate passes": 18,
}


def n_modules():
    """How many Python files the package has."""
    return len(list(PACKAGE.rglob("*.py")))


def import_depth():
    """How many modules the longest chain of imports has, those for types alone left out."""
    graph = grimp.build_graph("labelsure", exclude_type_checking_imports=True, cache_dir=None)
    depths = {}

    def depth(module, above=()):
        if module not in depths:
            below = graph.find_modules_directly_imported_by(module) - {*above, module}
            depths[module] = 1 + max((depth(b, (*above, module)) for b in below), default=0)
        return depths[module]

    return max(map(depth, graph.modules))


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
        "modules": n_modules(),
        "import depth": import_depth(),
        "lines of the longest module": longest_module(),
        "lines of the longest function": longest_function(),
        "modules that an estimate passes": len(modules_of_an_estimate()),
    }


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name}: {value} (at most {AIMS[name]})")
    for title, modules in (("estimate", modules_of_an_estimate()), ("fit", modules_of_a_fit())):
        print(f"\n{title} passes {len(modules)}:", *modules, sep="\n  ")
