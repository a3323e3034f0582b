"""Identity of the code behind a stored result: its sources and the versions of its libraries.

A stored result may be used again only if the same code would compute it. `digest_code` covers this
package, the modules that a user names with everything they import, and the versions of the
libraries among them. Imports are read from the syntax tree, so that nothing runs; a module that is
imported by a name computed at run time is not seen.
"""

from __future__ import annotations

import ast
import platform
import site
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

from labelsure._runtime.processes import PACKAGES

PACKAGE = __name__.partition(".")[0]


@cache
def digest_code(*modules: str) -> str:
    """Checksum of this package, of modules with all their imports, and of library versions.

    Parameters
    ----------
    modules
        Names of modules or classes; of each the whole package counts. Of an installed package it is
        the version, of any other the files.

    Examples
    --------
    >>> digest_code() == digest_code("labelsure.errors") == digest_code("sklearn.svm.SVC")
    True
    """
    libraries = set(PACKAGES)
    files: dict[str, str] = {}
    visited: set[str] = set()
    pending = {PACKAGE, *(name.partition(".")[0] for name in modules)}
    while pending:
        package = pending.pop()
        visited.add(package)
        distributions = () if package == PACKAGE else _distributions().get(package, ())
        if distributions and is_installed(package):
            libraries |= {*distributions}
            continue
        for name, path in _files(package):
            files[f"{package}/{name}"] = sha256(path.read_bytes()).hexdigest()
            if package != PACKAGE:
                pending |= _imported_packages(path) - visited - sys.stdlib_module_names
    versions = {name: version(name) for name in libraries}
    python = platform.python_version_tuple()[:2]
    identity = (python, sorted(versions.items()), sorted(files.items()))
    return sha256(repr(identity).encode()).hexdigest()


def is_installed(module_name: str) -> bool:
    """Whether a module belongs to an installed package; nothing is imported to find out."""
    package = module_name.partition(".")[0]
    if package == PACKAGE:
        return True
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    locations = _locations(package)
    return bool(locations) and all(
        any(path.is_relative_to(folder) for folder in folders) for path in locations
    )


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def _locations(package: str) -> list[Path]:
    """Folders and file that a package is imported from; empty if it does not exist."""
    try:
        spec = find_spec(package)
    except ValueError:  # a module that was made in this process and has no file
        return []
    places = list(spec.submodule_search_locations or []) if spec else []
    if spec and spec.has_location and spec.origin:
        places.append(spec.origin)
    return [Path(place) for place in places]


def _files(package: str) -> Iterator[tuple[str, Path]]:
    for place in _locations(package):
        if place.is_file():
            yield place.name, place
        for suffix in (".py", *EXTENSION_SUFFIXES):
            yield from ((str(path.relative_to(place)), path) for path in place.rglob(f"*{suffix}"))


def _imported_packages(path: Path) -> set[str]:
    """Top-level packages that a file imports, within functions as well."""
    if path.suffix != ".py":
        return set()
    try:
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError):  # a file of a package that nothing can import
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [
        node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
    ]
    return {name.partition(".")[0] for name in names}
