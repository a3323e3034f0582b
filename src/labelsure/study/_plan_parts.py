"""What a plan names: classes with their parameters, and where data sets come from."""

from __future__ import annotations

import inspect
import json
import site
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labelsure._runtime.storage import expand_path, first_line
from labelsure._runtime.typing import AnyPath
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.rows import show_names
from labelsure.study._code_digest import PACKAGE
from labelsure.tables.dataset import Dataset
from labelsure.tables.datasets import load_dataset, make_labelsets, read_dataset

CLASSIFIERS = {
    name: f"labelsure.classifiers.{name}"
    for name in (
        "BinaryRelevance",
        "ClassifierTrellis",
        "ConditionalBernoulliMixture",
        "EnsembleOfClassifierChains",
        "LabelPowerset",
        "ProbabilisticClassifierChain",
    )
} | {"DependenceLayer": "labelsure.classifiers.DependenceLayer"}
"""Classifiers that need no import path. A new one is an entry here."""

SIMULATION_KEYS = tuple(inspect.signature(make_labelsets).parameters)
KINDS = ("name", "file", "simulated")
COLUMN_KEYS = ("index", "drop", "sep")
KEYS = (*KINDS, "labels", *COLUMN_KEYS, "nominal", "source")


ESTIMATOR_METHODS = ("fit", "get_params")
"""What every estimator has, beside the method that it is wanted for."""


@dataclass(frozen=True)
class ClassSpec:
    """An estimator class and the parameters to make an object of it with.

    Parameters
    ----------
    path
        Where the class is imported from, such as ``"sklearn.linear_model.LogisticRegression"``.
    parameters
        Of its constructor.
    where
        The part of the plan that it stands in, for messages.
    methods
        What it is wanted for, such as ``"predict_proba"``; one of them is enough. A class without
        any is never called.
    """

    path: str
    parameters: Mapping[str, Any]
    where: str = field(compare=False)
    methods: tuple[str, ...] = field(compare=False)

    @classmethod
    def read(
        cls, table: Any, where: str, *methods: str, known: Mapping[str, str] | None = None
    ) -> ClassSpec:
        """Read a table of a plan: ``class``, and all other keys as parameters.

        Parameters
        ----------
        table
            What the plan has there.
        where
            Its name in messages.
        *methods
            Of which the class must have one.
        known
            Short names of classes.
        """
        if not isinstance(table, Mapping) or not isinstance(table.get("class"), str):
            raise InputError(
                f"{where} must be a table with the key `class`, got {table!r}. Write e.g. "
                '`class = "sklearn.linear_model.LogisticRegression"` below it.'
            )
        path = table["class"]
        if known and "." not in path:
            if path not in known:
                raise unknown_name(f"class of {where}", path, known)
            path = known[path]
        parameters = {key: value for key, value in table.items() if key != "class"}
        return cls(path, parameters, where, methods)

    def to_dict(self) -> dict[str, Any]:
        """Return the table that `read` reads."""
        return {"class": self.path, **self.parameters}

    @property
    def own_module(self) -> str:
        """The module of a class of this package or of the user; empty for other packages."""
        module_name, name = self._split_path()
        package = module_name.partition(".")[0]
        if module_name == PACKAGE:
            return f"{PACKAGE}.{import_module(PACKAGE)._HOME_OF.get(name, 'classifiers')}"
        return module_name if package == PACKAGE or not is_installed(module_name) else ""

    def check_trust(self) -> None:
        """Refuse a class outside of the installed packages, before its module is imported."""
        module_name, _ = self._split_path()
        if not is_installed(module_name):
            raise InputError(
                f"The class of {self.where}, {self.path!r}, is in a module outside of the "
                "installed packages, and importing a module runs it. If you know what it does, "
                "pass `trust_imports`."
            )

    def build(self, **more: Any) -> Any:
        """Return a new object of the class.

        Parameters
        ----------
        **more
            Further parameters, of which those are passed that the class has and the plan leaves
            open.
        """
        cls = self._find_class()
        names = _parameter_names(cls)
        for name in self.parameters:
            if names is not None and name not in names:
                raise unknown_name(f"parameter of {self.where} ({cls.__name__})", name, names)
        wanted = {name: value for name, value in more.items() if names is None or name in names}
        try:
            built = cls(**{**wanted, **self.parameters})
        except Exception as error:
            raise InputError(
                f"{self.where} must give parameters that {cls.__name__} takes, but it says: "
                f"{first_line(error)}."
            ) from error
        if not any(hasattr(built, method) for method in self.methods):
            raise InputError(
                f"{self.where} must have `{'` or `'.join(self.methods)}`, which {cls.__name__} has "
                "not with these parameters. Set the option that turns it on, or take another class."
            )
        return built

    def _find_class(self) -> type:
        """Return the class, looked at before anything is made of it: whatever is called runs."""
        module_name, name = self._split_path()
        try:
            module = import_module(module_name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a module may also end the program
            reason = first_line(error)
            if not isinstance(error, ImportError):
                reason = f"it raises {type(error).__name__}: {reason}"
            raise InputError(
                f"The class of {self.where}, {self.path!r}, cannot be imported: {reason}. Check "
                "the path, and that its package is installed."
            ) from error
        if not hasattr(module, name):
            raise unknown_name(f"class of {self.where} in {module_name}", name, _classes_of(module))
        cls = getattr(module, name)
        if not isinstance(cls, type):
            raise InputError(
                f"The class of {self.where} must be a class, got the {type(cls).__name__} "
                f"{self.path!r}."
            )
        has = {
            name: callable(getattr(cls, name, None)) for name in (*ESTIMATOR_METHODS, *self.methods)
        }
        if not (
            all(has[name] for name in ESTIMATOR_METHODS) and any(has[name] for name in self.methods)
        ):
            wanted = [
                *(f"`{name}`" for name in ESTIMATOR_METHODS),
                f"`{'` or `'.join(self.methods)}`",
            ]
            raise InputError(
                f"{self.where} must be an estimator class with {', '.join(wanted)}, which "
                f"{cls.__name__} is not. Take another class, or one that wraps it."
            )
        return cls

    def _split_path(self) -> tuple[str, str]:
        """Return the names of the module and of the class."""
        parts = self.path.split(".")
        if len(parts) < 2 or not all(part.isidentifier() for part in parts):
            raise InputError(
                f"The class of {self.where} must be an import path, got {self.path!r}. Write e.g. "
                '`class = "sklearn.linear_model.LogisticRegression"`.'
            )
        return ".".join(parts[:-1]), parts[-1]


def is_installed(module_name: str) -> bool:
    """Return whether a module belongs to an installed package; nothing is imported to find out.

    Parameters
    ----------
    module_name
        With the packages that it is in.
    """
    package = module_name.partition(".")[0]
    if package == PACKAGE:
        return True
    try:
        found = find_spec(package)
    except ValueError:  # it came about in this process, and has no file
        return False
    places = list(found.submodule_search_locations or []) if found else []
    if found and found.has_location and found.origin:
        places.append(found.origin)
    return bool(places) and all(_is_in_site_packages(Path(place)) for place in places)


def _is_in_site_packages(path: Path) -> bool:
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    return any(path.resolve().is_relative_to(Path(folder).resolve()) for folder in folders)


def _classes_of(module: Any) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, type)]


def _parameter_names(cls: type) -> list[str] | None:
    """Return what the constructor takes by name; None if it takes anything."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):  # some extension types have no signature
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [
        parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL
    ]


@dataclass(frozen=True)
class StudyData:
    """A data set as the cells get it.

    Parameters
    ----------
    data
        Features and labelsets.
    truth
        The distribution that the labelsets were drawn from, where the data is simulated.
    columns
        The settings of the plan that say which columns of the source are read, and how.
    """

    data: Dataset
    truth: LabelsetDistribution | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def checksum(self) -> str:
        """SHA-256 of the source together with which labels are taken from it."""
        names = "\n".join(show_names(self.data.label_names, self.data.n_labels))
        shape = f"{self.data.n_samples} {self.data.n_features}"
        columns = json.dumps(dict(self.columns), sort_keys=True, default=repr)
        parts = [self.data.checksum, shape, names, columns]
        return sha256("\n".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class DataSource:
    """Where a data set of a plan comes from.

    Parameters
    ----------
    key
        What the study calls it.
    settings
        Its table in the plan: `name` (of the catalogue), `file` or `simulated`; `labels`,
        `index`, `drop`, `sep`, `nominal` and `source` as in `load_dataset` and `read_dataset`.
    """

    key: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, key: str, table: Any, folder: Path | None) -> DataSource:
        """Read a table of a plan.

        Parameters
        ----------
        key
            The name of the table.
        table
            Its content.
        folder
            Where relative file names start.
        """
        where = f"[datasets.{key}]"
        if not isinstance(table, Mapping):
            raise InputError(f"{where} must be a table, got {table!r}. It may be empty.")
        for name in table:
            if name not in KEYS:
                raise unknown_name(f"key of {where}", name, KEYS)
        kinds = [kind for kind in KINDS if kind in table]
        if len(kinds) > 1:
            raise InputError(
                f"{where} must have one of `name`, `file` and `simulated`, got "
                f"{' and '.join(kinds)}. Split it into two data sets."
            )
        settings = dict(table) if kinds else {"name": key, **table}
        _check_kind(where, settings)
        if folder is not None:
            _make_absolute(settings, folder)
        return cls(key, settings)

    def load(self, data_dir: AnyPath | None = None) -> StudyData:
        """Load it.

        Parameters
        ----------
        data_dir
            The folder that data sets with a name are looked for in.
        """
        rest = {name: value for name, value in self.settings.items() if name not in KINDS}
        if "simulated" in self.settings:
            data, truth = make_labelsets(**{"random_state": 0, **self.settings["simulated"]})
            return StudyData(data, truth)
        columns = {name: value for name, value in rest.items() if name in COLUMN_KEYS}
        if "file" in self.settings:
            return StudyData(read_dataset(self.settings["file"], **rest), columns=columns)
        data = load_dataset(self.settings["name"], data_dir, **rest)
        return StudyData(data, columns=columns)


def _check_kind(where: str, settings: dict[str, Any]) -> None:
    """Check what can be checked without loading anything."""
    if "simulated" in settings:
        arguments = settings["simulated"]
        if not isinstance(arguments, Mapping):
            raise InputError(
                f"`simulated` in {where} must be a table of arguments of `make_labelsets`, got "
                f"{arguments!r}. Write e.g. `simulated = {{ n_samples = 1000 }}`."
            )
        for name in arguments:
            if name not in SIMULATION_KEYS:
                raise unknown_name(f"argument of `simulated` in {where}", name, SIMULATION_KEYS)
        if len(settings) > 1:
            other = next(name for name in settings if name != "simulated")
            raise InputError(f"{where} is simulated, so it must not have the key `{other}`.")
        return
    kind = "file" if "file" in settings else "name"
    if not isinstance(settings[kind], str):
        raise InputError(f"`{kind}` in {where} must be a string, got {settings[kind]!r}.")
    if kind == "file" and "source" in settings:
        raise InputError(f"{where} is a file, so it must not have the key `source`.")
    if kind == "name" and "sep" in settings:
        raise InputError(
            f"{where} has a name, so it must not have the key `sep`. Read it as a `file`."
        )


def _make_absolute(settings: dict[str, Any], folder: Path) -> None:
    """Let relative paths start where the plan is, not where the command runs."""
    if "file" in settings:
        settings["file"] = str(folder / expand_path(settings["file"]))
        labels = settings.get("labels")
        if isinstance(labels, str) and labels.lower().endswith(".xml"):
            settings["labels"] = str(folder / expand_path(labels))
