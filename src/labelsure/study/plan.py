"""Plans of studies, read from TOML and checked before anything runs."""

from __future__ import annotations

import inspect
import json
import re
import reprlib
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module, resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from labelsure._runtime import limits as _limits
from labelsure._runtime.code import PACKAGE, is_installed
from labelsure._runtime.processes import end_workers
from labelsure._runtime.storage import expand_path, first_line
from labelsure._runtime.typing import AnyPath, Estimator, JsonObject
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._engine_settings import Engine
from labelsure.distributions.candidates import CANDIDATES, group_by_rank
from labelsure.errors import DataError, InputError, UnknownNameError, unknown_name
from labelsure.labelsets.label_names import show_names
from labelsure.metrics.registry import METRICS
from labelsure.tables.datasets import Dataset, load_dataset, make_labelsets, read_dataset

CLASSIFIERS = (
    "BinaryRelevance",
    "ClassifierTrellis",
    "EnsembleOfClassifierChains",
    "LabelPowerset",
    "ProbabilisticClassifierChain",
    "RecalibratedClassifier",
)
"""Classifiers that need no import path. A new one is an entry here."""

MAX_SEED = 2**31 - 1
"""Largest seed: within the 32 bits of scikit-learn, with room for the number of a replicate."""

SIMULATION_KEYS = tuple(inspect.signature(make_labelsets).parameters)
SOURCE_KEYS = ("name", "file", "simulated")
COLUMN_KEYS = ("index", "drop", "sep")

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")]
"""Name of a data set or classifier; part of file names."""


class _Table(BaseModel):
    """A table of a plan: unknown keys and values of other types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ClassSpec(_Table):
    """Estimator class and parameters of its constructor.

    Attributes
    ----------
    path
        Where the class is imported from, such as ``"sklearn.linear_model.LogisticRegression"``;
        the key of the plan is `class`. All other keys are parameters.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue]
    methods: ClassVar[tuple[str, ...]] = ()
    """Accepted methods: the class must have one of them, or it is never called."""

    short_names: ClassVar[tuple[str, ...]] = ()
    path: str = Field(alias="class")

    @field_validator("path")
    @classmethod
    def _complete(cls, path: str) -> str:
        if cls.short_names and "." not in path:
            if path not in cls.short_names:
                raise unknown_name("classifier", path, cls.short_names)
            return f"{PACKAGE}.classifiers.{path}"
        parts = path.split(".")
        if len(parts) < 2 or not all(part.isidentifier() for part in parts):
            raise InputError(
                "must be an import path such as 'sklearn.linear_model.LogisticRegression', got "
                f"{path!r}."
            )
        return path

    @property
    def parameters(self) -> JsonObject:
        """The arguments of the constructor."""
        return dict(self.model_extra or {})

    def check_trust(self) -> None:
        """Raise InputError for a class outside of the installed packages; nothing is imported."""
        if not is_installed(self.path):
            raise InputError(
                f"{self.path!r} is in a module outside of the installed packages, and importing a "
                "module runs it. If you know what it does, pass `trust_imports`."
            )

    def build(self, **defaults: object) -> Estimator:
        """New instance of the class; parameters of the plan override `defaults`."""
        cls = self._find_class()
        names = _parameter_names(cls)
        for name in self.parameters:
            if names is not None and name not in names:
                raise unknown_name(f"parameter of {cls.__name__}", name, names)
        accepted = {
            name: value for name, value in defaults.items() if names is None or name in names
        }
        try:
            built = cls(**{**accepted, **self.parameters})
        except Exception as error:
            raise InputError(
                f"{cls.__name__} must take the parameters of the plan, but it says: "
                f"{first_line(error)}."
            ) from error
        if not any(hasattr(built, method) for method in self.methods):
            raise InputError(
                f"{cls.__name__} must have `{'` or `'.join(self.methods)}`, which it has not with "
                "these parameters. Set the option that turns it on, or take another class."
            )
        return built

    def _find_class(self) -> type:
        """The imported class, not yet called.

        Raises InputError if it cannot be imported or is no estimator class.
        """
        module_name, _, name = self.path.rpartition(".")
        try:
            module = import_module(module_name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a module may also end the program
            raise InputError(
                f"{self.path!r} cannot be imported: {type(error).__name__}: {first_line(error)}. "
                "Check the path, and that its package is installed."
            ) from error
        if not hasattr(module, name):
            classes = [key for key, value in vars(module).items() if isinstance(value, type)]
            raise unknown_name(f"class of {module_name}", name, classes)
        cls = getattr(module, name)
        methods = {key for key in ("fit", "get_params", *self.methods) if hasattr(cls, key)}
        is_estimator = isinstance(cls, type) and {"fit", "get_params"} < methods
        if not is_estimator:
            raise InputError(
                f"{self.path!r} must be an estimator class with `fit`, `get_params` and "
                f"`{'` or `'.join(self.methods)}`, which it is not. Take another class, or one "
                "that wraps it."
            )
        return cls


class BaseLearner(ClassSpec):
    """The class of the base learner."""

    methods = ("predict_proba",)


class Scaler(ClassSpec):
    """The class that scales features."""

    methods = ("transform",)


class Classifier(ClassSpec):
    """The class of a classifier; those of this package have short names."""

    methods = ("predict_distribution", "predict_proba")
    short_names = CLASSIFIERS


def _parameter_names(cls: type) -> list[str] | None:
    """Names of the constructor's parameters; None if it accepts any."""
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError):  # some extension types have no signature
        return None
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return None if is_open else list(parameters)


@dataclass(frozen=True)
class StudyData:
    """Data set of a study, with its true distribution if simulated.

    Parameters
    ----------
    data
        Features and labelsets.
    truth
        The distribution that the labelsets were drawn from, where the data is simulated.
    columns
        Column settings of the plan: the columns of the source, their roles, the separator.
    """

    data: Dataset
    truth: LabelsetDistribution | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def checksum(self) -> str:
        """SHA-256 of source checksum, shape, label names and column settings."""
        names = "\n".join(show_names(self.data.label_names, self.data.n_labels))
        shape = f"{self.data.n_samples} {self.data.n_features}"
        columns = json.dumps(dict(self.columns), sort_keys=True, default=repr)
        parts = [self.data.checksum, shape, names, columns]
        return sha256("\n".join(parts).encode()).hexdigest()


class DataSource(_Table):
    """Where a data set of a plan comes from.

    Attributes
    ----------
    name, file, simulated
        One of them: a name of the catalogue (by default that of the table), a file, or arguments
        of `make_labelsets`.
    labels, source
        As in `load_dataset`.
    index, drop, sep
        As in `read_dataset`, of a file only.
    """

    name: str | None = None
    file: str | None = None
    simulated: dict[str, JsonValue] | None = None
    labels: JsonValue = None
    index: JsonValue = None
    drop: JsonValue = None
    sep: str | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        kinds = [kind for kind in SOURCE_KEYS if getattr(self, kind) is not None]
        if len(kinds) > 1:
            raise InputError(
                f"must have one of `name`, `file` and `simulated`, got {' and '.join(kinds)}. "
                "Split it into two data sets."
            )
        for key in self.simulated or {}:
            if key not in SIMULATION_KEYS:
                raise unknown_name("argument of `simulated`", key, SIMULATION_KEYS)
        kind = kinds[0] if kinds else "name"
        refused = {"simulated": self.settings, "file": ("source",), "name": COLUMN_KEYS}[kind]
        for key in refused:
            if key in self.settings:
                raise InputError(f"must not have the key `{key}` beside `{kind}`. Leave it out.")
        return self

    @property
    def settings(self) -> JsonObject:
        """Keyword arguments of the function that reads the source."""
        return self.model_dump(exclude_none=True, exclude=set(SOURCE_KEYS))

    def resolve_paths(self, folder: Path) -> DataSource:
        """Source with relative paths resolved against a folder."""
        if self.file is None:
            return self
        paths = {"file": self.file}
        if isinstance(self.labels, str) and self.labels.lower().endswith(".xml"):
            paths["labels"] = self.labels
        absolute = {key: str(folder / expand_path(path)) for key, path in paths.items()}
        return self.model_copy(update=absolute)

    def load(self, key: str, data_dir: AnyPath | None = None) -> StudyData:
        """Data set of the source; `key` is its name in the plan."""
        if self.simulated is not None:
            arguments: JsonObject = {"random_state": 0, **self.simulated}
            return StudyData(*make_labelsets(**arguments))
        settings = self.settings
        if self.file is None:
            return StudyData(load_dataset(self.name or key, data_dir, **settings))
        columns = {name: value for name, value in settings.items() if name in COLUMN_KEYS}
        return StudyData(read_dataset(self.file, **settings), columns=columns)


def _distinct_names(registry: Mapping[str, object], noun: str) -> AfterValidator:
    """Validator of a tuple of names: each registered when the plan is read, none twice."""

    def check(names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in registry:
                raise unknown_name(noun, name, registry)
        if len(set(names)) < len(names):
            raise InputError(f"must not name a {noun} twice, got {', '.join(names)}.")
        return names

    return AfterValidator(check)


DEFAULT_CANDIDATES = ("HP", "TG", "SE", "CE", "ME", "CS")
RANK_CANDIDATES = ("HP", "TG", "SE", "CE")
"""Representatives of candidates that rank alike."""

OMIT = "omit"


def _check_convention(empty: float | str) -> float | str:
    if empty != OMIT and (isinstance(empty, str) or not 0 <= empty <= 1):
        raise InputError(f"must be a number in [0, 1] or {OMIT!r}, got {empty!r}.")
    return empty


Convention = Annotated[float | str, AfterValidator(_check_convention)]
"""The Jaccard and F1 of two empty labelsets, or "omit"."""

Names = Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
Repeats = Annotated[int, Field(ge=1, le=_limits.MAX_REPEATS)]


class Settings(_Table):
    """Settings shared by all analyses: metrics, candidates, replicates and seed.

    Attributes
    ----------
    metrics, candidates
        Their names. Kendall's correlation leaves out candidates that rank alike.
    empty
        The Jaccard and F1 of two empty labelsets, which are 0/0: a number from 0 to 1, or "omit",
        which leaves out the rows in which prediction and truth are empty.
    mixture_empty
        The same in Analysis 5; None means `empty`.
    n_replicates
        Splits of the mixture analysis.
    by_instance
        Whether the rows of an instance, one for each classifier, stay on one side of such a split.
    seed
        Random seed.

    Examples
    --------
    >>> Settings(candidates=("HP", "ME", "SE")).rank_candidates
    ('HP', 'SE')
    """

    metrics: Annotated[Names, _distinct_names(METRICS, "metric")] = ("exact", "hamming", "jaccard")
    candidates: Annotated[Names, _distinct_names(CANDIDATES, "candidate")] = DEFAULT_CANDIDATES
    empty: Convention = 1.0
    mixture_empty: Convention | None = None
    n_replicates: Repeats = 20
    by_instance: bool = False
    seed: int = Field(0, ge=0, le=MAX_SEED)

    def __init__(self, /, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise _input_error(error) from error

    @property
    def decision_empty(self) -> float:
        """Value of two empty labelsets for decisions: 0 with "omit", which never rewards them."""
        return 0.0 if isinstance(self.empty, str) else self.empty

    @property
    def rank_candidates(self) -> tuple[str, ...]:
        """The candidates whose rankings differ: by default HP, TG, SE, CE."""
        first = [name for name in RANK_CANDIDATES if name in self.candidates]
        return tuple(group_by_rank([*first, *self.candidates]))


class Plan(Settings):
    """Plan of a study: data sets, classifiers, repeats and the settings of the analyses.

    The score table holds all metrics that are registered, and more about those of the plan.

    Attributes
    ----------
    name
        Name of the plan.
    datasets
        Where each data set comes from, by the names that tables give them.
    classifiers
        The classifiers by the names that tables give them.
    base
        The base learner of all classifiers.
    scaler
        Fitted to the features of each training part and put before the classifier; None for
        features as they are.
    n_repeats
        Number of random splits.
    test_share
        The share of instances that is scored.
    engine
        How ensembles of chains are computed, see `labelsure.distributions.Engine`.
    description
        Free text.
    """

    name: str = "unnamed"
    description: str = ""
    n_repeats: Repeats = 5
    test_share: float = Field(0.4, gt=0, lt=1)
    engine: Annotated[str, AfterValidator(lambda name: Engine(name).name)] = "auto"
    base: BaseLearner
    scaler: Scaler | None = None
    classifiers: dict[Name, Classifier] = Field(min_length=1)
    datasets: dict[Name, DataSource] = Field(min_length=1)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], folder: Path | None = None) -> Plan:
        """Plan from the content of a TOML file.

        Parameters
        ----------
        settings
            The content of the file.
        folder
            Where relative file names start; None leaves them as they are.
        """
        plan = cls(**settings)
        if folder is None:
            return plan
        sources = {name: source.resolve_paths(folder) for name, source in plan.datasets.items()}
        return plan.model_copy(update={"datasets": sources})

    def to_dict(self) -> JsonObject:
        """All settings, such that `from_dict` gives the same plan."""
        names = {"metrics": list(self.metrics), "candidates": list(self.candidates)}
        return self.model_dump(by_alias=True, exclude_none=True) | names

    def with_repeats(self, n_repeats: int) -> Plan:
        """The plan with another number of repeats."""
        return self.from_dict({**self.to_dict(), "n_repeats": n_repeats})

    def classifier(self, name: str, random_state: int) -> Estimator:
        """A new classifier with its base learner.

        Parameters
        ----------
        name
            Key of the classifier in the plan.
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
        specs: dict[str, ClassSpec] = {"base": self.base}
        specs |= {"scaler": self.scaler} if self.scaler is not None else {}
        specs |= {f"classifiers.{name}": spec for name, spec in self.classifiers.items()}
        for key, spec in specs.items():
            with _message_prefix(f"`{key}`"):
                if not trust_imports:
                    spec.check_trust()
        for key, spec in specs.items():
            with _message_prefix(f"`{key}`"):
                spec.build(**({"estimator": self.base.build()} if "." in key else {}))


@contextmanager
def _message_prefix(place: str) -> Iterator[None]:
    """Prefix the messages of input errors with a place, such as the key of the plan."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{place}: {error}") from error


def _input_error(errors: ValidationError) -> InputError:
    """The first validation error as an InputError: one sentence with the path of its key."""
    first = errors.errors(include_url=False)[0]
    *above, last = first["loc"] or ("",)
    path = ".".join(map(str, first["loc"])).replace(".[key]", "")
    own = first.get("ctx", {}).get("error")
    if isinstance(own, UnknownNameError):
        return UnknownNameError(f"`{path}`: {own}")
    if isinstance(own, InputError):
        return InputError(f"`{path}` {own}" if str(own)[0].islower() else str(own))
    if first["type"] == "extra_forbidden":
        of, table = (f"`{'.'.join(map(str, above))}`", DataSource) if above else ("the plan", Plan)
        return unknown_name(f"key of {of}", last, table.model_fields)
    if first["type"] == "missing":
        return InputError(f"The plan must have the key `{path}`. See a shipped plan.")
    rule = re.sub(r"^.*? should", "must", first["msg"])
    return InputError(f"`{path}` {rule}, got {reprlib.repr(first['input'])}.")


def shipped_plans() -> list[str]:
    """Names of the plans that come with the package.

    Examples
    --------
    >>> shipped_plans()
    ['embedded', 'paper', 'paper-lasso', 'paper-lasso-cv', 'paper-standardised', 'quick', 'wide']
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
    try:
        str(path).encode()  # the path is noted in files of the run
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise DataError(f"The plan {str(path)!r} cannot be read: {first_line(error)}.") from error
    return _read_plan(text, path.stem, path.parent, trust_imports)


def parse_toml(text: str) -> JsonObject:
    """Content of a TOML file. Raises InputError if it is not valid TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"must be valid TOML, but it is not: {first_line(error)}.") from error


def _read_plan(text: str, name: str, folder: Path | None, trust_imports: bool) -> Plan:
    with _message_prefix(f"Plan {name!r}"):
        plan = Plan.from_dict({"name": name, **parse_toml(text)}, folder)
        plan.check_classes(trust_imports)
        return plan
