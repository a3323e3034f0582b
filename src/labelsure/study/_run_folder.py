"""The folder of a run: one owner at a time, no file that is only half there, and its manifest."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import pandas as pd

from labelsure._runtime.storage import (
    LOCK,
    OWNER,
    expand_path,
    hold_folder,
    is_leftover,
    make_folder,
    remove_leftovers,
    write_text,
)
from labelsure._runtime.typing import AnyPath
from labelsure.errors import InputError
from labelsure.study._kept_frames import read_frame
from labelsure.study._plan import Plan
from labelsure.study._plan_parts import StudyData
from labelsure.study._plan_text import parse_toml

FOLDERS = ("cells", "analyses", "tables", "figures")
"""Where a run writes, beside its folder itself."""

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "pandas",
    "pyarrow",
    "statsmodels",
    "joblib",
    "threadpoolctl",
)
"""Packages whose versions the numbers may depend on."""


class RunFolder:
    """Where a run keeps its plan, cells, tables and figures.

    Parameters
    ----------
    path
        The folder; `locked` makes it where there is none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from labelsure.study import load_plan, run_study
    >>> plan = load_plan("quick").with_repeats(1)
    >>> with TemporaryDirectory() as out, RunFolder(out).locked() as folder:
    ...     run = run_study(plan, folder, n_jobs=1)
    ...     during = folder.read_json("manifest.json")["state"]
    >>> during
    'running'
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = expand_path(path)
        self.manifest: Manifest | None = None
        self._is_locked = False

    @contextmanager
    def locked(self) -> Iterator[Self]:
        """Keep the folder for this process, or say who has it.

        Within it, the same object can be locked again. Leaving the outermost one without an error
        completes the manifest of the run that was made meanwhile.
        """
        if self._is_locked:
            yield self
            return
        make_folder(self.path, "The run folder")
        self._check_mark()
        make_folder(self.cells, "The run folder")
        with hold_folder(self.path, "the run folder"):
            self._is_locked = True
            try:
                for name in ("", *FOLDERS):
                    remove_leftovers(self.path / name)
                yield self
                if self.manifest is not None:
                    self.manifest.complete()
            finally:
                self._is_locked = False

    def _check_mark(self) -> None:
        """Refuse a folder of something else, whose files a run would replace."""
        is_run = (self.path / "manifest.json").is_file() and self.cells.is_dir()
        if is_run:
            return
        begun = {LOCK, OWNER, "cells"}
        others = sorted(
            path.name
            for path in self.path.iterdir()
            if path.name not in begun and not is_leftover(path)
        )
        if others:
            raise InputError(
                f"The run folder {str(self.path)!r} must be new or empty, or hold a run; it holds "
                f"{others[0]!r} and no manifest of a run. Choose another folder."
            )

    @property
    def cells(self) -> Path:
        """The folder of finished cells."""
        return self.path / "cells"

    def cell_path(self, name: str) -> Path:
        """Return the file of a cell."""
        return self.cells / f"{name}.parquet"

    def start_manifest(
        self, plan: Plan, sets: dict[str, StudyData], n_jobs: int, started: float
    ) -> Manifest:
        """Write the manifest of a run that has just begun.

        Parameters
        ----------
        plan, sets
            What is computed, on which data.
        n_jobs
            How many cells at a time.
        started
            When it began, by `time.monotonic`.
        """
        content = {
            "state": "running",
            "started": _now(),
            "versions": _versions(),
            "plan": plan.to_dict(),
            "n_jobs": n_jobs,
            "datasets": {
                name: {
                    "source": loaded.data.source,
                    "checksum": loaded.data.checksum,
                    "n_samples": loaded.data.n_samples,
                    "n_labels": loaded.data.n_labels,
                    "n_features": loaded.data.n_features,
                }
                for name, loaded in sets.items()
            },
            "cells": {},
        }
        self.manifest = Manifest(self, started, content)
        self.manifest.write()
        return self.manifest

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, entirely or not at all."""
        write_text(self.path / name, text)

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file, entirely or not at all."""
        self.write_text(name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def read_json(self, name: str) -> Any:
        """Return the content of a JSON file; None if there is none that can be read.

        Parameters
        ----------
        name
            Of the file.
        """
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None

    def refuse_other_plan(self, plan: Plan) -> None:
        """Refuse to go on with a folder that holds the run of another plan.

        Parameters
        ----------
        plan
            What is going to be run.
        """
        manifest = self.read_json("manifest.json")
        before = manifest.get("plan") if isinstance(manifest, dict) else None
        now = json.loads(json.dumps(plan.to_dict()))
        if isinstance(before, dict) and before != now:
            changed = [key for key in now if before.get(key) != now[key]]
            raise InputError(
                f"The run folder {str(self.path)!r} holds a run of other settings "
                f"({', '.join(changed) or 'of an older version'}). Choose another folder, or say "
                "`overwrite`; cells that stay the same are kept."
            )

    def read_seconds(self) -> float:
        """Return how long the last run took; NaN where the manifest does not say."""
        manifest = self.read_json("manifest.json")
        seconds = manifest.get("seconds") if isinstance(manifest, dict) else None
        return float(seconds) if isinstance(seconds, (int, float)) else float("nan")

    def read_failures(self) -> dict[str, dict[str, str]]:
        """Return error, message and traceback of each failed cell, as far as they can be read."""
        found = self.read_json("failures.json")
        keys = ("error", "message", "traceback")
        return {
            name: {key: str(failure.get(key, "")) for key in keys}
            for name, failure in (found.items() if isinstance(found, dict) else ())
            if isinstance(failure, dict)
        }

    def read_table(self, name: str) -> pd.DataFrame:
        """Return a table that a finished study writes, or say that there is none.

        Parameters
        ----------
        name
            Of its file, without the suffix.
        """
        path = self.path / f"{name}.parquet"
        if not path.is_file():
            raise InputError(
                f"The run folder must hold {name}.parquet, which a finished study writes; there is "
                f"none in {str(self.path)!r}. Run `labelsure study` with this folder first."
            )
        return read_frame(path)[0]

    def read_plan_settings(self) -> dict[str, Any]:
        """Return the content of plan.toml, or say that there is none."""
        path = self.path / "plan.toml"
        if not path.is_file():
            raise InputError(
                "The run folder must hold plan.toml, which a study writes; there is none in "
                f"{str(self.path)!r}. Run `labelsure study` with this folder first."
            )
        try:
            return parse_toml(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{str(path)!r} must be TOML, but it cannot be read: {error}."
            ) from error


@dataclass
class Manifest:
    """What made the numbers of a run: versions, settings, checksums, durations.

    Parameters
    ----------
    folder
        Of the run.
    started
        When it began, by `time.monotonic`.
    content
        What manifest.json holds.
    """

    folder: RunFolder
    started: float
    content: dict[str, Any]
    failed: list[str] = field(default_factory=list)

    def note_cell(self, name: str, notes: dict[str, Any]) -> None:
        """Remember how long a cell took and what it warned of."""
        self.content["cells"][name] = notes

    def note_failure(self, name: str) -> None:
        """Remember that a cell failed."""
        self.failed.append(name)

    def complete(self) -> None:
        """Write that the run is over, and how long it took."""
        self.content["cells"] = dict(sorted(self.content["cells"].items()))
        self.content |= {
            "state": "incomplete" if self.failed else "complete",
            "failed": sorted(self.failed),
            "finished": _now(),
            "seconds": round(time.monotonic() - self.started, 3),
        }
        self.write()

    def write(self) -> None:
        """Write manifest.json."""
        self.folder.write_json("manifest.json", self.content)


def labelsure_version() -> str:
    """Return the version of this package."""
    from labelsure import __version__

    return __version__


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {"labelsure": labelsure_version(), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "platform": f"{sys.platform} {platform.machine()}"}
