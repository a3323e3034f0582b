"""Write a plan as TOML: the standard library only reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(settings: Mapping[str, Any]) -> str:
    """Return TOML whose content is `settings`: numbers, strings, lists, and tables of them.

    Examples
    --------
    >>> print(to_toml({"seed": 0, "base": {"C": 0.1}}))
    seed = 0
    <BLANKLINE>
    [base]
    C = 0.1
    <BLANKLINE>
    """
    return "\n".join([*_lines(settings, ()), ""])


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner = (*path, key)
            lines += ["", f"[{'.'.join(_key(part) for part in inner)}]", *_lines(value, inner)]
    return lines


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(entry) for entry in value)}]"
    if isinstance(value, Mapping):  # in a list, where a table must be inline
        pairs = (f"{_key(key)} = {_value(entry)}" for key, entry in value.items())
        return f"{{{', '.join(pairs)}}}"
    return repr(value)  # whole numbers, floats with inf and nan, as TOML spells them


def _text(text: str) -> str:
    # JSON's strings are TOML's but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
