"""The manifest of a run: what made these numbers."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from labelsure.study._plan import Plan
from labelsure.study._plan_parts import StudyData
from labelsure.study._run_folder import RunFolder

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


def labelsure_version() -> str:
    """Return the version of this package."""
    from labelsure import __version__

    return __version__


@dataclass
class Manifest:
    """What made these numbers: versions, settings, checksums, durations."""

    folder: RunFolder
    content: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def start(
        cls, folder: RunFolder, plan: Plan, sets: dict[str, StudyData], n_jobs: int
    ) -> Manifest:
        """Write the manifest of a run that has just begun.

        Parameters
        ----------
        folder
            Of the run.
        plan, sets
            What is computed, on which data.
        n_jobs
            How many cells at a time.
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
        manifest = cls(folder, content)
        manifest._write()
        return manifest

    def note_cell(self, name: str, notes: dict[str, Any]) -> None:
        """Remember how long a cell took and what it warned of."""
        self.content["cells"][name] = notes

    def complete(self, failures: dict[str, Any], seconds: float) -> None:
        """Write that the run is over.

        Parameters
        ----------
        failures
            The cells that failed.
        seconds
            How long the run took.
        """
        self.content["cells"] = dict(sorted(self.content["cells"].items()))
        self.content |= {
            "state": "incomplete" if failures else "complete",
            "failed": sorted(failures),
            "finished": _now(),
            "seconds": round(seconds, 3),
        }
        self._write()

    def _write(self) -> None:
        self.folder.write_json("manifest.json", self.content)


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
