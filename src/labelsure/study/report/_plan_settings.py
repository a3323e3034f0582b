"""The settings of a study as texts, which stand beside the tables that they made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from labelsure.study.analyses._all_analyses import AnalysisSettings

if TYPE_CHECKING:
    from labelsure.study._plan import Plan

LONGEST_SETTING = 400


def flatten_settings(plan: Plan) -> dict[str, str]:
    """Return the settings that are printed: the plan's and those of the analyses, as text.

    Parameters
    ----------
    plan
        Of the study.

    Examples
    --------
    >>> from labelsure.study import load_plan
    >>> shown = flatten_settings(load_plan("paper"))
    >>> shown["name"], shown["base.C"], shown["empty"], shown["response"]
    ('paper', '0.1', '0.0', 'rates')
    """
    shown = dict(_flatten(plan.to_dict()))
    for name, value in asdict(AnalysisSettings.from_plan(plan)).items():
        shown[name] = _write_value(value)
    return shown


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    flat = []
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat += _flatten(value, f"{prefix}{name}.")
        else:
            flat.append((f"{prefix}{name}", _write_value(value)))
    return flat


def _write_value(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SETTING else text[: LONGEST_SETTING - 3] + "..."
