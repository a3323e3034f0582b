"""Run the scripts behind docs/evidence again, and list the files that are older than the code.

    LABELSURE_DATA=folder python -m benchmarks.evidence make [SCRIPT ...]
    python -m benchmarks.evidence check

`make` runs the scripts whose files are missing or older than the code, two at a time, then draws
the charts and takes README's pictures. The manifest notes each file when its script has ended, so
that a second `make` goes on where the first one stopped. Logs are in runs/evidence.

docs/evidence/manifest.json has for each CSV file its script, the day, and a digest of the code
behind it: of the modules of labelsure and of the benchmarks that the script imports, directly or
through others, without docstrings and comments. Versions of libraries do not count. `check` lists
files that are older than the code, that no script writes, or that a script should have written.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).parents[1]
EVIDENCE = ROOT / "docs" / "evidence"
MANIFEST = EVIDENCE / "manifest.json"
RUNS = ROOT / "runs" / "evidence"
PACKAGES = {"labelsure": ROOT / "src" / "labelsure", "benchmarks": ROOT / "benchmarks"}
DATA = "LABELSURE_DATA"


@dataclass(frozen=True)
class Script:
    """A benchmark and the CSV files, without suffix, that it writes; by default one of its name.

    Of `arguments`, OUT is replaced by the path of the file, and KEPT by the path of a file from
    which the script goes on and which belongs to one state of the code. Studies of `plans` run
    before it, and its figures come from them. A script of speeds runs `alone`.
    """

    files: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ("OUT",)
    plans: tuple[str, ...] = ()
    alone: bool = False


PLANS = ("paper", "paper-lasso", "paper-lasso-cv", "paper-standardised", "wide")
STRONG = "paper-standardised-strong"
STUDY_TABLES = ("agreement", "claims", "conclusions", "correlations", "datasets", "decisions")
STUDY_TABLES += ("empty", "low_end", "wide", "without")
CALIBRATION = ("expected_calibration_error_of_every_model", "full_or_mix", "misses_of")
CALIBRATION += ("on_the_whole",)
RECALIBRATION = ("further_sets_each_of_them", "further_sets_means", "six_sets_means")
RECALIBRATION += ("the_six_sets_each_of_them",)

SCRIPTS = {
    "acceptance": Script(),
    "acceptance_levels": Script(),
    "acceptance_starts": Script(),
    "approximate": Script(),
    "base_learners": Script(arguments=()),
    "batches": Script(),
    "calibration": Script(tuple(f"calibration_{name}" for name in CALIBRATION), ()),
    "cluster_streams": Script(),
    "clusters": Script(),
    "compare_models": Script(),
    "compare_sklearn": Script(),
    "cross_fitting": Script(),
    "decisions": Script(),
    "drift": Script(("shift_power",)),
    "few_labels": Script(),
    "gate": Script(),
    "input_ranges": Script(),
    "joints": Script(("joints", "joints_better_or_worse"), ("KEPT",)),
    "label_audits": Script(),
    "monitoring": Script(("monitoring_falls",)),
    "paper_variants": Script(arguments=()),
    "recalibration": Script(tuple(f"recalibration_{name}" for name in RECALIBRATION), ()),
    "region_sizes": Script(("regions_open",)),
    "small_calibration": Script(),
    "study": Script(tuple(f"study_{name}" for name in STUDY_TABLES), (), (*PLANS, STRONG)),
    "taxonomies": Script(),
    "training": Script(arguments=()),
    "votes": Script(("votes", "votes_means")),
    "__main__": Script(("speeds",), ("--page",), alone=True),
}


def files_of(name: str) -> tuple[str, ...]:
    return SCRIPTS[name].files or (name,)


def code_behind(name: str) -> str:
    """Digest of the modules that a script imports, with all that they import in turn."""
    roots = [f"benchmarks.{name}", *(["labelsure.study.run"] if SCRIPTS[name].plans else [])]
    code = {module: digest_code(_path(module)) for module in sorted(imported_modules(roots))}
    for plan in SCRIPTS[name].plans:
        code[plan] = _plan(plan).read_text("utf-8")
    return sha256(json.dumps(code).encode()).hexdigest()


def imported_modules(roots: Sequence[str]) -> set[str]:
    """Modules of the project and, of these, all that they import, also inside functions."""
    found, pending = set(), list(roots)
    while pending:
        module = pending.pop()
        if module not in found:
            found.add(module)
            pending += _imports(module)
    return found


@cache
def digest_code(path: Path) -> str:
    """SHA-256 of the code of a file, without docstrings and comments."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    return sha256(ast.unparse(tree).encode()).hexdigest()


def _is_text(part: ast.stmt) -> bool:
    return (
        isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Constant)
        and isinstance(part.value.value, str)
    )


@cache
def _imports(module: str) -> frozenset[str]:
    """Modules of the project that one module imports, but for those that only type checkers do."""
    nodes = list(_executed(ast.parse(_path(module).read_bytes())))
    found: set[str] = set()
    aliases: set[str] = set()  # of the package itself, whose names are imported when they are used
    for node in nodes:
        if isinstance(node, ast.Import):
            aliases |= {
                alias.asname or alias.name for alias in node.names if alias.name == "labelsure"
            }
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in [f"{node.module}.{alias.name}" for alias in node.names]:
                found.add(name if _path(name).exists() else _lazy().get(name, node.module))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    found |= {
        _lazy().get(f"labelsure.{node.attr}", "labelsure")
        for node in attributes
        if isinstance(node.value, ast.Name) and node.value.id in aliases
    }
    return frozenset(name for name in found if _path(name).exists())


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """A syntax tree without what stands below `if TYPE_CHECKING`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield from _executed(child)


@cache
def _lazy() -> dict[str, str]:
    """Module behind each public name, which `labelsure` imports on first use."""
    stub = ast.parse((PACKAGES["labelsure"] / "__init__.pyi").read_bytes())
    return {
        f"labelsure.{alias.name}": node.module or ""
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _path(module: str) -> Path:
    """File of a module of the project; of any other a path that does not exist."""
    package, *parts = module.split(".")
    path = PACKAGES.get(package, ROOT / "no such package").joinpath(*parts)
    return path / "__init__.py" if path.is_dir() else path.with_name(f"{path.name}.py")


def _plan(name: str) -> Path:
    own = ROOT / "benchmarks" / "plans" / f"{name}.toml"
    return own if own.exists() else PACKAGES["labelsure"] / "study" / "plans" / f"{name}.toml"


def read_manifest() -> dict[str, dict[str, str]]:
    return json.loads(MANIFEST.read_text("utf-8")) if MANIFEST.exists() else {}


_LOCK = Lock()


def _note(name: str, code: str | None) -> None:
    """Write the digest of a script's files into the manifest; without a digest take them out."""
    with _LOCK:
        noted = {file: entry for file, entry in read_manifest().items() if entry["script"] != name}
        if code is not None:
            entry = {"script": name, "made": f"{datetime.now(UTC):%Y-%m-%d}", "code": code}
            noted |= dict.fromkeys(files_of(name), entry)
        MANIFEST.write_text(json.dumps(dict(sorted(noted.items())), indent=1) + "\n", "utf-8")


def is_current(name: str) -> bool:
    noted, code = read_manifest(), code_behind(name)
    files = files_of(name)
    return all(
        (EVIDENCE / f"{file}.csv").exists() and noted.get(file, {}).get("code") == code
        for file in files
    )


def problems() -> Iterator[str]:
    """One line for each file of evidence that is not of today's code."""
    noted = read_manifest()
    known = {file: name for name in SCRIPTS for file in files_of(name)}
    kept = {path.stem for path in EVIDENCE.glob("*.csv")}
    yield from (f"{file}.csv: no script writes it" for file in sorted(kept - set(known)))
    yield from (
        f"{file}.csv: missing; {known[file]} writes it" for file in sorted(set(known) - kept)
    )
    for file in sorted(kept & set(known)):
        if file not in noted:
            yield f"{file}.csv: made before digests were kept ({known[file]})"
        elif noted[file]["code"] != code_behind(known[file]):
            yield f"{file}.csv: older than the code, of {noted[file]['made']} ({known[file]})"


def commands(name: str) -> Iterator[list[str]]:
    """Command lines of a script, one after the other."""
    script = SCRIPTS[name]
    for plan in script.plans:
        run = ["study", "run", str(_plan(plan)), "--data", os.environ[DATA]]
        yield [sys.executable, "-m", "labelsure", *run, "--out", str(RUNS / "study" / plan)]
    paths = {"OUT": EVIDENCE / f"{files_of(name)[0]}.csv"}
    paths["KEPT"] = RUNS / f"{name}_{code_behind(name)[:8]}.csv"
    arguments = [str(paths.get(argument, argument)) for argument in script.arguments]
    yield [sys.executable, "-m", f"benchmarks.{name}", *arguments]


def make(name: str) -> bool:
    """Run a script and note its files; whether it succeeded."""
    code = code_behind(name)
    _note(name, None)
    RUNS.mkdir(parents=True, exist_ok=True)
    own_threads = (
        {} if SCRIPTS[name].alone else {"OMP_NUM_THREADS": "1", "LABELSURE_NUM_THREADS": "1"}
    )
    environment = os.environ | own_threads | {"LABELSURE_RUNS": str(RUNS / "study")}
    print(f"{name}: started", flush=True)
    with (RUNS / f"{name}.log").open("w", encoding="utf-8") as log:
        for command in commands(name):
            done = subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
            if done.returncode:
                print(f"{name}: failed with {done.returncode}; see {log.name}", flush=True)
                return False
    if code == code_behind(name):
        _note(name, code)
    print(f"{name}: wrote {', '.join(files_of(name))}", flush=True)
    return True


def draw() -> bool:
    """Draw the charts, and take README's pictures where there is a browser."""
    commands = [[sys.executable, "-m", "benchmarks.charts"]]
    if shutil.which("chromium"):
        commands.append([sys.executable, "examples/front_page_picture.py"])
    else:
        print("No chromium: README's pictures stay as they are.", flush=True)
    return all(subprocess.run(command, cwd=ROOT).returncode == 0 for command in commands)


def main(arguments: Sequence[str]) -> int:
    """Make evidence, or check it; 1 if a script failed or a file is too old."""
    parser = argparse.ArgumentParser(prog="benchmarks.evidence")
    parser.add_argument("task", choices=("make", "check"))
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="those that are older")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.scripts) - set(SCRIPTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(SCRIPTS)}")
    if chosen.task == "check":
        lines = list(problems())
        print(*lines, f"{len(lines)} files of docs/evidence are not of this code.", sep="\n")
        return int(bool(lines))
    if not os.environ.get(DATA):
        parser.error(f"{DATA} must name the folder of the ARFF files")
    names = [name for name in chosen.scripts or SCRIPTS if not is_current(name)]
    beside = [name for name in names if not SCRIPTS[name].alone]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(make, beside))
    done += [make(name) for name in names if SCRIPTS[name].alone]
    return int(not (all(done) and draw()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
