"""What is published: a wheel and a source archive that work in an environment of their own."""

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import labelsure

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STUDY = ["river", "tomli_w"]
OPTIONAL = [*STUDY, "dask", "distributed", "playwright", "xgboost", "lightgbm", "catboost"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build both archives and return their paths."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"]
    subprocess.run([*command, "-d", str(folder)], cwd=ROOT, check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def python(built, tmp_path_factory):
    """Return the Python of a new environment: the wheel is its own, the rest is borrowed."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(packages)
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"


def run(python, code, folder):
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [python, "-c", code], cwd=folder, env=own, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_wheel_holds_all_that_is_read_when_it_runs(built):
    with zipfile.ZipFile(built[0]) as archive:
        names = set(archive.namelist())
    for source in (ROOT / "src" / "labelsure").rglob("*"):
        if source.is_file() and "__pycache__" not in source.parts:
            assert source.relative_to(ROOT / "src").as_posix() in names
    assert "labelsure/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_source_archive_can_be_tested(built):
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("pyproject.toml", "README.md", "LICENSE", "tests/oracles.py", "docs/index.md"):
        assert needed in names
    assert not any(name.startswith((".venv", "runs", "build")) for name in names)


@pytest.mark.slow  # it compiles every kernel, in an environment without a cache
def test_the_wheel_works_without_optional_packages(python, tmp_path):
    code = (
        f"import sys\nfor name in {OPTIONAL}: sys.modules[name] = None\n"
        "import labelsure as ls, numpy as np\n"
        "print(ls.__file__)\n"
        "for name in ls.__all__: getattr(ls, name)\n"
        "P = np.random.default_rng(0).uniform(size=(60, 2)); Y = (P > 0.5).astype(int)\n"
        "model = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), random_state=0)\n"
        "print(len(model.fit(P, Y).report(P, Y).html) > 10000)\n"
        "from labelsure.cli import main\n"
        "main(['--version'])\n"
    )
    place, *rest = run(python, code, tmp_path).splitlines()
    assert str(python.parent.parent) in place
    assert rest == ["True", f"labelsure {labelsure.__version__}"]


ASKS = {
    "study": "from labelsure.study import load_plan",
}


@pytest.mark.parametrize("need", ASKS)
def test_what_needs_an_extra_names_it(need, python, tmp_path):
    code = (
        f"import sys\nfor name in {OPTIONAL}: sys.modules[name] = None\n"
        "import labelsure as ls\n"
        f"try: {ASKS[need]}\n"
        "except ls.InputError as error: print(error)\n"
    )
    assert 'pip install "labelsure[study]"' in run(python, code, tmp_path)


def test_archives_have_the_version_of_the_package(built):
    assert built[0].name.startswith(f"labelsure-{labelsure.__version__}-")
    assert built[1].name == f"labelsure-{labelsure.__version__}.tar.gz"


def test_continuous_integration_runs_every_supported_python():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    (required,) = re.findall(r"^ +python: \[(.*)\]$", workflow, re.MULTILINE)
    prefix = "Programming Language :: Python :: 3."
    stated = [name for name in PROJECT["classifiers"] if name.startswith(prefix)]
    assert stated == [f"{prefix}{version[3:-1]}" for version in required.split(", ")]
