"""The text of plans: read from files and parsed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from labelsure._runtime import limits as _limits
from labelsure._runtime.storage import first_line
from labelsure.errors import DataError, InputError


def read_plan_text(path: Path) -> str:
    """Return the text of a plan, or say why it cannot be one.

    Parameters
    ----------
    path
        Of the file, which is there. Runs note where their plan is, so it must be text itself.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"The path of a plan must be UTF-8, because runs note it, got {str(path)!r}. Rename "
            "the file or its folder."
        ) from error
    try:
        n_bytes = path.stat().st_size
        if n_bytes <= _limits.MAX_PLAN_BYTES:
            return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The plan {str(path)!r} cannot be read: {first_line(error)}.") from error
    raise DataError(
        f"The plan {str(path)!r} must have at most {_limits.format_bytes(_limits.MAX_PLAN_BYTES)}, "
        f"it has {_limits.format_bytes(n_bytes)}. Is it a plan?"
    )


def parse_toml(text: str) -> dict[str, Any]:
    """Return what a TOML file says, or one sentence about why it cannot be read.

    Parameters
    ----------
    text
        Its content.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not TOML that can be read: {first_line(error)}.") from error
