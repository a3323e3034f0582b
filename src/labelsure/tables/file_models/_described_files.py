"""What a saved model says of itself, read without loading it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labelsure._runtime.notebook import join_names
from labelsure._runtime.storage import expand_path
from labelsure._runtime.typing import AnyPath
from labelsure.errors import MAX_NAMES_LISTED
from labelsure.saving._file_format import damaged
from labelsure.saving._savable import read_description

if TYPE_CHECKING:
    from labelsure.model._model_card import ModelCard


@dataclass(frozen=True)
class DescribedFile:
    """What stands in the first entry of a saved file.

    Parameters
    ----------
    path
        Of the file.
    kind
        The class that was saved.
    label_names
        Of the model; None where it has none.
    versions
        Of what wrote the file, by name.
    trust
        The types that have to be trusted to load it.
    card
        Of an `AccuracyAwareClassifier`; None for others.
    """

    path: str
    kind: str
    label_names: list[str] | None
    versions: dict[str, str]
    trust: list[str]
    card: ModelCard | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        card = None if self.card is None else self.card.to_dict()
        return {**vars(self), "card": card}

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        lines = [f"model: {self.kind}", f"written by: {versions}"]
        if self.trust:
            lines.append(f"must be trusted to load it: {', '.join(self.trust)}")
        if self.card is not None:
            lines.append(str(self.card))
        elif self.label_names is not None:
            names = join_names(self.label_names, MAX_NAMES_LISTED)
            lines.append(f"labels: {len(self.label_names)} ({names})")
        return "\n".join(lines)


def describe_file(path: AnyPath) -> DescribedFile:
    """Return what a saved model says of itself; nothing in it is imported or built.

    Parameters
    ----------
    path
        A file that `save` wrote.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from labelsure import BinaryRelevance
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "m.labelsure"
    ...     BinaryRelevance().fit([[0.0], [1.0]], [[0, 1], [1, 0]]).save(path)
    ...     print(describe_file(path))
    model: BinaryRelevance
    written by: labelsure ...
    labels: 2 (y0, y1)
    """
    from labelsure.model._model_card import ModelCard

    place = expand_path(path)
    header = read_description(place)
    try:
        card = None if header.get("card") is None else ModelCard(**header["card"])
        names = header.get("label_names")
        described = DescribedFile(
            str(path), header["kind"], names, header["versions"], header["trust"], card
        )
        str(described)  # which fails where a value is of another type
    except Exception as error:  # whatever the file says, it is to blame
        raise damaged(place.name, error) from error
    return described
