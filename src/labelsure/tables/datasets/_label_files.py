"""Text files with the names of labels."""

from __future__ import annotations

from labelsure._runtime.storage import decode, decompress, expand_path, read_bytes
from labelsure._runtime.typing import AnyPath
from labelsure.errors import DataError


def read_label_file(path: AnyPath) -> list[str]:
    r"""Return the names of labels in a text file, one in each line, in its order.

    Parameters
    ----------
    path
        As it is or as .gz or .bz2. Blank lines at the end are left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "names.txt"
    ...     _ = path.write_text("red shoes\nblue shoes\n")
    ...     names = read_label_file(path)
    >>> names
    ['red shoes', 'blue shoes']
    """
    place = expand_path(path)
    text = decode(decompress(read_bytes(place), place)).replace("\r\n", "\n")
    names = [line.strip() for line in text.rstrip().split("\n")] if text.strip() else []
    line_of: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name:
            raise DataError(
                f"Line {number} of {place.name!r} must name a label, it is blank. Drop that line, "
                "or name the label."
            )
        if line_of.setdefault(name, number) != number:
            raise DataError(
                f"Each line of {place.name!r} must name a label of its own, {name!r} is in lines "
                f"{line_of[name]} and {number}. Rename one of them."
            )
    if not names:
        raise DataError(f"The file {place.name!r} must name at least one label, it is empty.")
    return names
