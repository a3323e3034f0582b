"""Would the tests notice? One operator or constant is changed at a time, and the tests are run.

`make mutants` draws a sample of all such changes with a fixed seed, runs for each the tests that
`tests/mutants.toml` names for its module, and lists the changes that no test noticed. Those that
change nothing anyone could see are named, with a reason, in `tests/equivalent_mutants.toml`; all
others ask for a test.

Why not a tool that exists: mutmut 3 leaves out every function with a decorator (properties, cached
ones) and every constant of a module, draws no sample, and wraps constructors, whose signatures
scikit-learn reads. cosmic-ray writes each change into the source file, has one test command for
all modules, and starts Python anew for each, which takes longer here than most tests do.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.machinery
import os
import random
import signal
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "labelsure"
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.toml"
LEFT_OUT = ("_kernels/", "__init__.py", "__main__.py", "_typing.py")
PRELOADED = ("numba", "pandas", "scipy.stats", "sklearn.linear_model", "statsmodels.api")
SECONDS = 300  # a change that makes the tests run longer than this is noticed, too

GUARDS = ("strict", "frozen")  # of `zip` and of dataclasses

OTHER: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
"""What each operator is changed into."""


@dataclass(frozen=True)
class Mutant:
    """One change: the `place`-th of its module, in which function, and how it reads."""

    module: str
    place: int
    function: str
    change: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is listed by: it stays the same when other lines of the module change."""
        return self.module, self.function, self.change


def change_node(node: ast.AST) -> ast.AST | None:
    """Return a changed copy of a node; None where nothing is to be changed."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(new.op) in OTHER:
        new.op = OTHER[type(new.op)]()
    elif isinstance(new, ast.Compare):
        new.ops[0] = OTHER[type(new.ops[0])]()
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not | ast.USub):
        return new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        new.value = new.value + 1
    else:
        return None
    return new


def visit(tree: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str, int | None, str]]:
    """Yield parent, field, index or None, and the function, of every node that may be changed."""
    for field, value in ast.iter_fields(tree):
        # Annotations do nothing; guards are against mistakes that no test should be able to make.
        if field in ("annotation", "returns") or getattr(tree, "arg", None) in GUARDS:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield tree, field, index, function
                name = getattr(child, "name", "") if hasattr(child, "body") else ""
                yield from visit(child, f"{function}.{name}".strip(".") if name else function)


def mutate(tree: ast.AST, wanted: int | None = None) -> Iterator[tuple[int, str, str]]:
    """Yield place, function and change; the wanted place is changed in the tree itself."""
    for place, (parent, field, index, function) in enumerate(list(visit(tree))):
        value = getattr(parent, field)
        node = value if index is None else value[index]
        new = change_node(node)
        if new is None or (wanted is not None and wanted != place):
            continue
        shown = parent if isinstance(node, ast.Constant) else node
        before = ast.unparse(shown)
        put = (
            setattr
            if index is None
            else (lambda _, __, found, at=index, to=value: to.__setitem__(at, found))
        )
        put(parent, field, new)
        after = ast.unparse(parent if isinstance(node, ast.Constant) else new)
        if wanted is None:
            put(parent, field, node)
        yield place, function, f"{before.splitlines()[0]} -> {after.splitlines()[0]}"


@cache
def read_source(path: Path) -> str:
    """Return a module as it was when the changes were counted, whatever is written meanwhile."""
    return path.read_text()


def all_mutants(chosen: list[str]) -> list[Mutant]:
    """Return every change of the package, or of modules whose path starts with one of these."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        if any(part in f"{module}" for part in LEFT_OUT):
            continue
        if not chosen or any(module.startswith(start) for start in chosen):
            found += [Mutant(module, *rest) for rest in mutate(ast.parse(read_source(path)))]
    return found


def tests_of(module: str) -> tuple[str, ...]:
    """Return the files of tests for a module."""
    table = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())["tests"]
    entries = [name for name in table if module.startswith(name)]
    return tuple(str(ROOT / "tests" / name) for name in table[max(entries, key=len)])


def read_equivalent() -> list[dict[str, str]]:
    """Return the changes that nobody can notice: module, function, change and reason."""
    return tomllib.loads(EQUIVALENT.read_text())["equivalent"]


def run_tests(mutant: Mutant | None, tests: tuple[str, ...]) -> int:
    """Run tests with a change in a module, and return pytest's exit code."""
    import pytest

    if mutant is not None:
        path = PACKAGE / mutant.module
        tree = ast.parse(read_source(path))
        list(mutate(tree, mutant.place))
        code = compile(ast.fix_missing_locations(tree), str(path), "exec")
        original = importlib.machinery.SourceFileLoader.get_code

        def get_code(loader, name):
            return code if Path(loader.path) == path else original(loader, name)

        importlib.machinery.SourceFileLoader.get_code = get_code
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))


def start(mutant: Mutant | None, tests: tuple[str, ...]) -> int:
    """Run the tests in a copy of this process, which has loaded what takes long; return its id."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        os._exit(run_tests(mutant, tests))
    except BaseException:
        os._exit(1)


Task = tuple[Mutant | None, tuple[str, ...]]
"""A change, or none, and the tests that are run."""


def judge(tasks: list[Task], jobs: int) -> Iterator[tuple[Mutant | None, tuple[str, ...], int]]:
    """Yield each task with the exit code of its tests."""
    waiting, running = tasks[::-1], {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop()
                running[start(*task)] = (task, time.monotonic())
            time.sleep(0.05)
            for child, (task, since) in list(running.items()):
                if time.monotonic() - since > SECONDS:
                    os.killpg(child, signal.SIGKILL)
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    del running[child]
                    yield *task, os.waitstatus_to_exitcode(status)
    finally:  # interrupted: nobody waits for what is still running
        for child in running:
            os.kill(child, signal.SIGKILL)


def main() -> int:
    """Draw, run, compare with what is known to be equivalent, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="beginnings of paths; all by default")
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    for name in PRELOADED:
        importlib.import_module(name)
    os.chdir(ROOT)
    everything = all_mutants(arguments.modules)
    size = min(arguments.sample, len(everything))
    sample = random.Random(arguments.seed).sample(everything, size)
    files = sorted({path for mutant in sample for path in tests_of(mutant.module)})
    for _, (path,), code in judge([(None, (path,)) for path in files], arguments.jobs):
        if code:
            raise SystemExit(f"{path} fails without any change.")
    listed = {(one["module"], one["function"], one["change"]) for one in read_equivalent()}
    killed, equivalent, survived = 0, 0, []
    for mutant, _, code in judge([(m, tests_of(m.module)) for m in sample], arguments.jobs):
        if code:
            killed += 1
        elif mutant.key in listed:
            equivalent += 1
        else:
            survived.append(mutant)
            print(f"{mutant.module} {mutant.function}: {mutant.change}", flush=True)
    print(
        f"{size} of {len(everything)} changes (seed {arguments.seed}): {killed} noticed, "
        f"{equivalent} equivalent, {len(survived)} unnoticed ({len(survived) / size:.1%})."
    )
    return int(len(survived) > 0.05 * size)


if __name__ == "__main__":
    sys.exit(main())
