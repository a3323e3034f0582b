"""The identity of code changes with every file and library version behind a result."""

import pytest

from labelsure._runtime import code
from labelsure._runtime.code import digest_code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    digest_code.cache_clear()
    yield tmp_path
    digest_code.cache_clear()


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    digest_code.cache_clear()


FILES = {
    "own_package/__init__.py": "from .inner import sums\n",
    "own_package/inner/__init__.py": "",
    "own_package/inner/sums.py": "import json, helper_one.deep\n",
    "helper_one/__init__.py": "",
    "helper_one/deep.py": "def f():\n    from helper_two import C\n    return C\n",
    "helper_two.py": "C = 1\ntry:\n    import no_such_module\nexcept ImportError:\n    pass\n",
    "unrelated.py": "C = 1\n",
    "helper_one/broken_template.py": "def (:\n",
}


@pytest.mark.parametrize("changed", [name for name in FILES if name != "unrelated.py"])
def test_every_file_that_a_module_imports_counts(folder, changed):
    write(folder, FILES)
    before = digest_code("own_package.inner.sums.Total")
    assert digest_code("own_package") == before
    write(folder, {changed: FILES[changed] + "# changed\n"})
    assert digest_code("own_package") != before


def test_files_that_are_not_imported_do_not_count(folder):
    write(folder, FILES)
    before = digest_code("own_package")
    write(folder, {"unrelated.py": "C = 2\n"})
    assert digest_code("own_package") == before
    assert digest_code("own_package") != digest_code("unrelated") != digest_code()


def test_a_file_that_moves_counts(folder):
    write(folder, {"own_package/__init__.py": "", "own_package/a.py": "x = 1\n"})
    before = digest_code("own_package")
    (folder / "own_package" / "a.py").rename(folder / "own_package" / "b.py")
    digest_code.cache_clear()
    assert digest_code("own_package") != before


def test_a_module_that_becomes_importable_counts(folder):
    write(folder, FILES)
    before = digest_code("own_package")
    write(folder, {"no_such_module.py": ""})
    assert digest_code("own_package") != before


@pytest.mark.parametrize("library", ["numpy", "scipy", "scikit-learn", "numba", "labelsure"])
def test_the_versions_of_the_libraries_count(folder, monkeypatch, library):
    before = digest_code("sklearn.svm.SVC")
    real = code.version
    monkeypatch.setattr(code, "version", lambda name: "99.0" if name == library else real(name))
    digest_code.cache_clear()
    assert digest_code("sklearn.svm.SVC") != before


@pytest.mark.parametrize("module", ["joblib", "own_model"])
def test_the_version_of_a_library_counts_where_it_is_imported(folder, monkeypatch, module):
    write(folder, {"own_model.py": "import joblib\n", "other.py": "import json\n"})
    before, other = digest_code(module), digest_code("other")
    real = code.version
    monkeypatch.setattr(code, "version", lambda name: "99.0" if name == "joblib" else real(name))
    digest_code.cache_clear()
    assert digest_code(module) != before
    assert digest_code("other") == other


def test_the_minor_version_of_python_counts(folder, monkeypatch):
    before = digest_code()
    monkeypatch.setattr(code.platform, "python_version_tuple", lambda: ("9", "1", "2"))
    digest_code.cache_clear()
    other = digest_code()
    assert other != before
    monkeypatch.setattr(code.platform, "python_version_tuple", lambda: ("9", "1", "3"))
    digest_code.cache_clear()
    assert digest_code() == other
