"""Classes that a plan names, and the objects it wants of them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from labelsure.errors import InputError, unknown_name

CLASSIFIERS = {
    name: f"labelsure.classifiers.{name}"
    for name in (
        "BinaryRelevance",
        "ClassifierTrellis",
        "EnsembleOfClassifierChains",
        "ProbabilisticClassifierChain",
    )
}
"""Classifiers that need no import path. A new one is an entry here."""


@dataclass(frozen=True)
class ClassSpec:
    """A class and the parameters to make an object of it with.

    Parameters
    ----------
    path
        Where the class is imported from, such as ``"sklearn.linear_model.LogisticRegression"``.
    parameters
        Of its constructor.
    where
        The part of the plan that it stands in, for messages.
    """

    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    where: str = field(default="", compare=False)

    @classmethod
    def read(cls, table: Any, where: str, known: Mapping[str, str] | None = None) -> ClassSpec:
        """Read a table of a plan: ``class``, and all other keys as parameters.

        Parameters
        ----------
        table
            What the plan has there.
        where
            Its name in messages.
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
        return cls(path, parameters, where)

    def to_dict(self) -> dict[str, Any]:
        """Return the table that `read` reads."""
        return {"class": self.path, **self.parameters}

    def build(self, **more: Any) -> Any:
        """Return a new object of the class.

        Parameters
        ----------
        **more
            Further parameters, of which those are passed that the class has and the plan leaves
            open.
        """
        cls = self._import()
        names = _parameter_names(cls)
        for name in self.parameters:
            if names is not None and name not in names:
                raise unknown_name(f"parameter of {self.where} ({cls.__name__})", name, names)
        wanted = {name: value for name, value in more.items() if names is None or name in names}
        try:
            return cls(**{**wanted, **self.parameters})
        except Exception as error:
            raise InputError(
                f"{self.where} must give parameters that {cls.__name__} takes, but it says: {error}"
            ) from error

    def _import(self) -> type:
        module_name, _, name = self.path.rpartition(".")
        if not module_name:
            raise InputError(
                f"The class of {self.where} must be an import path, got {self.path!r}. Write e.g. "
                '`class = "sklearn.linear_model.LogisticRegression"`.'
            )
        try:
            module = import_module(module_name)
        except ImportError as error:
            raise InputError(
                f"The class of {self.where}, {self.path!r}, cannot be imported: {error}. Check the "
                "path, and that its package is installed."
            ) from error
        if not hasattr(module, name):
            raise unknown_name(f"class of {self.where} in {module_name}", name, _classes_of(module))
        cls = getattr(module, name)
        if not isinstance(cls, type):
            raise InputError(
                f"The class of {self.where} must be a class, got the {type(cls).__name__} "
                f"{self.path!r}."
            )
        return cls


def _classes_of(module: Any) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, type)]


def _parameter_names(cls: type) -> list[str] | None:
    """Return what the constructor takes by name; None if it takes anything."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):  # some extension types do not tell
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [
        parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL
    ]
