"""Know which multi-label predictions to trust.

Names are imported when they are first used, so that ``import labelsure`` and the command line
start at once; packages such as `labelsure.distributions` have the names for experts. `__init__.pyi`
lists each public name and its module, for this module and for type checkers alike.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_HOME_OF = {
    part.names[0].name: part.module for part in _STUB.body if isinstance(part, ast.ImportFrom)
}
"""The module that each name is imported from; subpackages are imported from the package itself."""

__all__ = sorted(name for name, home in _HOME_OF.items() if home != __name__)


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'labelsure' has no attribute {name!r}")
    if home == __name__:
        return import_module(f"{home}.{name}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
