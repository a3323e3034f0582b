"""Files of docs/evidence are known to be of today's code, or older than it."""

import json
import re

import pytest
from benchmarks import evidence
from benchmarks.evidence import (
    EVIDENCE,
    ROOT,
    SCRIPTS,
    code_behind,
    digest_code,
    files_of,
    imported_modules,
    is_current,
    problems,
)


def test_each_file_of_evidence_has_a_script():
    kept = {path.stem for path in EVIDENCE.glob("*.csv")}
    written = [file for name in SCRIPTS for file in files_of(name)]
    assert kept == set(written)
    assert len(written) == len(set(written))


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_names_the_files_that_it_writes(name):
    """A script of its own path writes what its command line says; others name their files."""
    text = (ROOT / "benchmarks" / f"{name}.py").read_text("utf-8")
    if "OUT" in SCRIPTS[name].arguments:
        assert f"docs/evidence/{files_of(name)[0]}.csv" in text
        assert "sys.argv" in text
    prefix = re.sub(r"_.*", "", files_of(name)[0])
    assert prefix in text or name == "__main__"


PROJECT = {
    "labelsure/__init__.pyi": "from labelsure._maker import make as make\n",
    "labelsure/__init__.py": "",
    "labelsure/_maker.py": "def make():\n    from labelsure.sums import total\n    return total\n",
    "labelsure/sums.py": 'def total(x):\n    "The sum."\n    return sum(x)  # exact\n',
    "labelsure/typed.py": "",
    "labelsure/other.py": "",
    "benchmarks/script.py": "import labelsure as ls\nfrom typing import TYPE_CHECKING\n"
    "if TYPE_CHECKING:\n    from labelsure import typed\nls.make()\n",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for cached in (digest_code, evidence._imports, evidence._lazy):
            cached.cache_clear()

    packages = {name: tmp_path / name for name in ("labelsure", "benchmarks")}
    monkeypatch.setattr(evidence, "PACKAGES", packages)
    monkeypatch.setattr(evidence, "EVIDENCE", tmp_path)
    monkeypatch.setattr(evidence, "MANIFEST", tmp_path / "manifest.json")
    monkeypatch.setattr(evidence, "SCRIPTS", {"script": evidence.Script()})
    write(PROJECT)
    yield write
    write({})


def test_code_behind_a_script_is_all_that_it_imports(project):
    found = imported_modules(["benchmarks.script"])
    assert found == {"benchmarks.script", "labelsure", "labelsure._maker", "labelsure.sums"}


@pytest.mark.parametrize(
    ("file", "old", "new", "counts"),
    [
        ("labelsure/sums.py", "sum(x)", "sum(x) + 1", True),
        ("labelsure/sums.py", "The sum", "Sum", False),
        ("labelsure/sums.py", "# exact", "# in order", False),
        ("labelsure/_maker.py", "return total", "return total, 1", True),
        ("benchmarks/script.py", "ls.make()", "ls.make()\nls.make()", True),
        ("labelsure/other.py", "", "x = 1", False),
        ("labelsure/typed.py", "", "x = 1", False),
    ],
)
def test_only_a_change_of_the_code_makes_evidence_old(project, tmp_path, file, old, new, counts):
    (tmp_path / "script.csv").write_text("1\n")
    evidence._note("script", code_behind("script"))
    assert is_current("script")
    assert not list(problems())
    project({file: PROJECT[file].replace(old, new) if old else new})
    assert is_current("script") is not counts
    assert [line.startswith("script.csv: older than the code") for line in problems()] == (
        [True] if counts else []
    )


def test_files_without_digest_or_script_and_missing_files_are_listed(project, tmp_path):
    (tmp_path / "foreign.csv").write_text("1\n")
    assert [line.partition(";")[0] for line in problems()] == [
        "foreign.csv: no script writes it",
        "script.csv: missing",
    ]
    (tmp_path / "script.csv").write_text("1\n")
    assert [*problems()][1].startswith("script.csv: made before digests were kept")


@pytest.mark.parametrize("ends_well", [True, False])
def test_only_a_script_that_ended_is_noted(project, tmp_path, monkeypatch, ends_well):
    for name in ("ROOT", "RUNS"):
        monkeypatch.setattr(evidence, name, tmp_path)
    text = "import sys\nopen(sys.argv[1], 'w').write('1')\n" + "1 / 0\n" * (not ends_well)
    project({"benchmarks/script.py": text, "benchmarks/__init__.py": ""})
    evidence._note("script", "of older code")
    assert evidence.make("script") is ends_well
    assert is_current("script") is ends_well
    noted = json.loads((tmp_path / "manifest.json").read_text())
    assert set(noted) == ({"script"} if ends_well else set())
