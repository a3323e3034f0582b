"""Plans: what a study computes, read from TOML and checked before anything runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from labelsure._runtime import limits as _limits
from labelsure._runtime.processes import end_workers
from labelsure._runtime.storage import expand_path
from labelsure._runtime.typing import AnyPath
from labelsure.distributions._engines import Engine
from labelsure.distributions.candidates import CANDIDATES
from labelsure.errors import DataError, InputError, UnknownNameError, unknown_name
from labelsure.metrics.registry import METRICS, check_empty
from labelsure.study._plan_parts import CLASSIFIERS, ClassSpec, DataSource
from labelsure.study._plan_text import parse_toml, read_plan_text

PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""Names of data sets and classifiers become parts of file names."""

MAX_WHOLE = 2**63 - 1
MAX_SEED = 2**31 - 1
"""Of a plan: the size of whole numbers (which is what TOML promises), and its seed (what
scikit-learn takes, with room for the number of a replicate)."""

PREDICTIONS = ("predict_distribution", "predict_proba")
"""What a classifier of a plan must have, one or the other."""

REQUIRED = ("datasets", "classifiers", "base")
RENAMED_KEYS = {"repeats": "n_repeats", "replicates": "n_replicates"}
"""Keys of plans in the folders of older runs, and what they are called today."""


@dataclass(frozen=True)
class Plan:
    """What a study computes.

    Parameters
    ----------
    name
        What the plan is called.
    datasets
        Where each data set comes from.
    classifiers
        The classifiers by the names that tables give them.
    base
        The base learner of all classifiers.
    scaler
        Fitted to the features of each training part and put before the classifier; None for
        features as they are.
    n_repeats
        How often the data is split anew.
    test_share
        The share of instances that is scored.
    seed
        Together with the name of a cell it seeds all that is random in it.
    metrics, candidates
        What the analyses are about. The score table holds the candidates and the expected accuracy
        of all metrics that are registered, and more about these metrics.
    empty
        The Jaccard and F1 of two empty labelsets.
    engine
        How ensembles of chains are computed, see `labelsure.distributions.Engine`.
    best_labels
        Up to how many labels chains look for a metric's best decision among all labelsets. Beyond,
        they go by their likely ones, and the score table says how far from the best that can be.
    n_replicates
        Splits of the mixture analysis.
    by_instance
        Whether these splits keep an instance, seen through several classifiers, on one side.
    description
        For people.
    """

    name: str
    datasets: tuple[DataSource, ...]
    classifiers: Mapping[str, ClassSpec]
    base: ClassSpec
    scaler: ClassSpec | None = None
    n_repeats: int = 5
    test_share: float = 0.4
    seed: int = 0
    metrics: tuple[str, ...] = ("exact", "hamming", "jaccard")
    candidates: tuple[str, ...] = ("HP", "TG", "SE", "CE", "ME", "CS")
    empty: float = 1.0
    engine: str = "auto"
    best_labels: int = 16
    n_replicates: int = 20
    by_instance: bool = False
    description: str = ""

    def __post_init__(self) -> None:
        _check_whole("n_repeats", self.n_repeats, 1, _limits.MAX_REPEATS)
        _check_whole("seed", self.seed, 0, MAX_SEED)
        _check_whole("best_labels", self.best_labels, 0)
        _check_whole("n_replicates", self.n_replicates, 1, _limits.MAX_REPEATS)
        if not isinstance(self.by_instance, bool):
            raise InputError(f"`by_instance` must be true or false, got {self.by_instance!r}.")
        if not _is_number(self.test_share) or not 0 < self.test_share < 1:
            raise InputError(
                f"`test_share` must be a number between 0 and 1, got {self.test_share!r}. Usual "
                "is 0.4."
            )
        _check_names("metrics", self.metrics, METRICS)
        _check_names("candidates", self.candidates, CANDIDATES)
        check_empty(self.empty)
        Engine(self.engine)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], folder: Path | None = None) -> Plan:
        """Return the plan that a TOML file spells.

        Parameters
        ----------
        settings
            The content of the file.
        folder
            Where relative file names start; None leaves them as they are.
        """
        _check_values(settings, "")
        known = [entry.name for entry in fields(cls)]
        for key in settings:
            if key not in known:
                raise unknown_name("key of the plan", key, known)
        for key in REQUIRED:
            if key not in settings:
                raise InputError(f"The plan must have the key `{key}`. See a shipped plan.")
        read = dict(settings)
        read.setdefault("name", "unnamed")
        for key in ("name", "description"):
            if not isinstance(read.get(key, ""), str):
                raise InputError(f"`{key}` of the plan must be a string, got {read[key]!r}.")
        read["datasets"] = _read_datasets(settings["datasets"], folder)
        read["classifiers"] = _read_classifiers(settings["classifiers"])
        read["base"] = ClassSpec.read(settings["base"], "[base]", "predict_proba")
        if "scaler" in settings:
            read["scaler"] = ClassSpec.read(settings["scaler"], "[scaler]", "transform")
        for key in ("metrics", "candidates"):
            if isinstance(read.get(key), list):
                read[key] = tuple(read[key])
        return cls(**read)

    @classmethod
    def from_record(
        cls, settings: Mapping[str, Any], datasets: Iterable[str], classifiers: Iterable[str]
    ) -> Plan:
        """Return the plan of a run that is there already, as far as its file says.

        Keys that older versions wrote are read under their names of today. Data sets, classifiers
        and a base learner that the file leaves out have a name alone: an analysis needs no more.

        Parameters
        ----------
        settings
            The content of the run's plan.toml.
        datasets, classifiers
            Their names in its score table.
        """
        unknown = {"class": "labelsure.unknown"}
        names_alone: dict[str, Any] = {
            "datasets": {name: {} for name in datasets},
            "classifiers": dict.fromkeys(classifiers, unknown),
            "base": unknown,
        }
        renamed = {RENAMED_KEYS.get(key, key): value for key, value in settings.items()}
        return cls.from_dict({**names_alone, **renamed})

    def to_dict(self) -> dict[str, Any]:
        """Return all settings, such that `from_dict` gives the same plan."""
        plain = {
            entry.name: getattr(self, entry.name)
            for entry in fields(self)
            if entry.name not in ("datasets", "classifiers", "base", "scaler")
        }
        plain["metrics"], plain["candidates"] = list(self.metrics), list(self.candidates)
        plain["base"] = self.base.to_dict()
        if self.scaler is not None:
            plain["scaler"] = self.scaler.to_dict()
        plain["classifiers"] = {name: spec.to_dict() for name, spec in self.classifiers.items()}
        plain["datasets"] = {source.key: dict(source.settings) for source in self.datasets}
        return plain

    def with_repeats(self, n_repeats: int) -> Plan:
        """Return the plan with another number of repeats."""
        return replace(self, n_repeats=n_repeats)

    def classifier(self, name: str, random_state: int) -> Any:
        """Return a new classifier with its base learner.

        Parameters
        ----------
        name
            What the plan calls it.
        random_state
            Its seed, unless the plan gives one.
        """
        return self.classifiers[name].build(estimator=self.base.build(), random_state=random_state)

    def check_classes(self, trust_imports: bool = False) -> None:
        """Make one object of each class, so that a wrong name or parameter shows at once.

        Parameters
        ----------
        trust_imports
            Import modules outside of the installed packages too.
        """
        specs = [self.base, *self.classifiers.values()]
        specs += [] if self.scaler is None else [self.scaler]
        if not trust_imports:
            for spec in specs:
                spec.check_trust()
        self.base.build()
        for name in self.classifiers:
            self.classifier(name, random_state=0)
        if self.scaler is not None:
            self.scaler.build()


def shipped_plans() -> list[str]:
    """Return the names of the plans that come with the package.

    Examples
    --------
    >>> shipped_plans()
    ['embedded', 'paper', 'paper-standardised', 'quick', 'wide']
    """
    entries = resources.files("labelsure.study").joinpath("plans").iterdir()
    return sorted(
        entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml")
    )


def load_plan(plan: AnyPath, *, trust_imports: bool = False) -> Plan:
    """Read and check a plan.

    A plan is code: the modules of its classes are imported, which runs them. Of the classes only
    estimators are ever called.

    Parameters
    ----------
    plan
        The name of a shipped plan, or the path of a TOML file.
    trust_imports
        Import modules outside of the installed packages too, such as a file of your own. It is
        found beside the plan, too.

    Examples
    --------
    >>> plan = load_plan("paper")
    >>> plan.n_repeats, list(plan.classifiers)
    (5, ['Indep', 'CT', 'ECC'])
    """
    shipped = shipped_plans()
    if str(plan) in shipped:
        text = resources.files("labelsure.study").joinpath("plans", f"{plan}.toml").read_text()
        return _read_plan(text, str(plan), None, trust_imports)
    path = expand_path(plan)
    if not path.is_file():
        if path.suffix == ".toml" or len(path.parts) > 1:
            raise DataError(
                f"There is no plan file {str(plan)!r}. Name a TOML file or one of the shipped "
                f"plans: {', '.join(shipped)}."
            )
        raise unknown_name("plan", str(plan), shipped)
    path = path.resolve()
    if trust_imports and str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # behind all others: no installed module is hidden
        end_workers()  # those that run do not know the folder
    return _read_plan(read_plan_text(path), path.stem, path.parent, trust_imports)


def _read_plan(text: str, name: str, folder: Path | None, trust_imports: bool) -> Plan:
    try:
        plan = Plan.from_dict({"name": name, **parse_toml(text)}, folder)
        plan.check_classes(trust_imports)
    except UnknownNameError as error:
        raise UnknownNameError(f"Plan {name!r}: {error}") from error
    except InputError as error:
        raise InputError(f"Plan {name!r}: {error}") from error
    except RecursionError as error:
        raise InputError(f"Plan {name!r}: its tables are nested too deeply. Flatten it.") from error
    return plan


def _read_datasets(tables: Any, folder: Path | None) -> tuple[DataSource, ...]:
    _check_tables("datasets", tables)
    return tuple(DataSource.read(key, table, folder) for key, table in tables.items())


def _read_classifiers(tables: Any) -> dict[str, ClassSpec]:
    _check_tables("classifiers", tables)
    return {
        name: ClassSpec.read(table, f"[classifiers.{name}]", *PREDICTIONS, known=CLASSIFIERS)
        for name, table in tables.items()
    }


def _check_tables(key: str, tables: Any) -> None:
    if not isinstance(tables, Mapping) or not tables:
        raise InputError(
            f"`{key}` must hold at least one table, got {tables!r}. Write e.g. `[{key}.mine]`."
        )
    for name in tables:
        if not PLAIN_NAME.fullmatch(name):
            raise InputError(
                f"Names in `{key}` must consist of letters, digits, - and _, got {name!r}. Rename "
                "it: it becomes part of a file name."
            )


def _check_values(value: Any, place: str) -> None:
    """Refuse dates and large numbers, which cannot be written to every file of a run."""
    if isinstance(value, (Mapping, list)):
        inside = value.items() if isinstance(value, Mapping) else [("", entry) for entry in value]
        for key, entry in inside:
            _check_values(entry, f"{place}.{key}".strip("."))
    elif isinstance(value, int) and not -MAX_WHOLE - 1 <= value <= MAX_WHOLE:
        raise InputError(
            f"`{place}` in the plan must be a whole number of at most 64 bits, which it is not. "
            "Write a smaller one, or one with a decimal point."
        )
    elif not isinstance(value, (str, int, float)):
        raise InputError(
            f"`{place}` in the plan must be a text, a number, true or false, a list or a table, "
            f"got the {type(value).__name__} {value}. Write a date or a time as a string."
        )


def _check_names(key: str, names: Any, known: Mapping[str, Any]) -> None:
    if not isinstance(names, tuple) or not names:
        raise InputError(f"`{key}` must be a list of at least one name, got {names!r}.")
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise unknown_name(f"entry of `{key}`", name, known)
    if len(set(names)) < len(names):
        raise InputError(f"`{key}` must not name anything twice, got {', '.join(names)}.")


def _check_whole(key: str, value: Any, least: int, most: int | None = None) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and least <= value and (most is None or value <= most):
        return
    wanted = f">= {least}" if most is None else f"from {least} to {most}"
    raise InputError(f"`{key}` must be a whole number {wanted}, got {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
