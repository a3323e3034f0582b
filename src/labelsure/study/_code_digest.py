"""A checksum of the code that cells depend on, so that none is kept after that code has changed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

PACKAGE = __name__.partition(".")[0]
_ROOT = Path(__file__).parents[1]


@cache
def digest_code(*modules: str) -> str:
    """Return a checksum of modules and of everything that they import from this package.

    Parameters
    ----------
    *modules
        Their full names. Of a module outside of this package only its own file counts.

    Examples
    --------
    >>> digest_code("labelsure.metrics") == digest_code("labelsure.distributions.candidates")
    False
    """
    digest = sha256()
    for name, path in sorted(_find_files(modules).items()):
        digest.update(f"{name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _find_files(modules: Iterable[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    left = list(modules)
    while left:
        name = left.pop()
        path = None if name in found else _file_of(name)
        if path is not None:
            found[name] = path
            if name.partition(".")[0] == PACKAGE:
                left += _imports(path)
    return found


def _file_of(name: str) -> Path | None:
    """Return the file of a module; None for what is no module, such as a function."""
    package, *rest = name.split(".")
    if package != PACKAGE:
        spec = find_spec(name)
        return Path(spec.origin) if spec and spec.has_location and spec.origin else None
    place = _ROOT.joinpath(*rest)
    files = (place.with_suffix(".py"), place / "__init__.py")
    # The package itself loads its names when they are used: its own file makes no numbers.
    return next((path for path in files if rest and path.is_file()), None)


def _imports(path: Path) -> Iterator[str]:
    """Yield the full names of all that a file imports from this package, modules or not."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
