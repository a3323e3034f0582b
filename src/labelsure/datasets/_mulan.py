"""The labels that Mulan names in an xml beside the ARFF file."""

from __future__ import annotations

from xml.etree import ElementTree

from labelsure.errors import DataError


def read_label_names(content: bytes, where: str) -> list[str]:
    """Return the names of the labels, in whatever order and nesting they come.

    Parameters
    ----------
    content
        The xml.
    where
        The name of the file, for the messages.
    """
    if b"<!" in content.replace(b"<!--", b""):
        # Entities can grow without end, and a list of labels needs none.
        raise DataError(f"{where} must not have declarations (`<!...>`) in it. Remove them.")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise DataError(f"{where} must be xml that names labels, but {error}.") from error
    labels = [element for element in root.iter() if _local_name(element.tag) == "label"]
    names = [name for label in labels if (name := label.get("name"))]
    if not names or len(names) < len(labels):
        raise DataError(
            f'{where} must name labels as `<label name="..."></label>` inside of `<labels>`, '
            f"it has {len(names)} such names for {len(labels)} labels."
        )
    return names


def _local_name(tag: object) -> str:
    return str(tag).rpartition("}")[2]
