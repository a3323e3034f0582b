"""Files: read as bytes, written as a whole, noted as finished; folders of one process at a time."""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import select
import shutil
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from difflib import get_close_matches
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from labelsure._runtime.typing import JsonObject
from labelsure.errors import DataError, InputError, TooLargeError, hide_secrets

if TYPE_CHECKING:
    from labelsure._runtime.typing import AnyPath  # which loads NumPy; help texts do without

_TEMPORARY = re.compile(r"\..+\.[0-9]+-[0-9]+\.labelsure-tmp", re.DOTALL)
"""Names of files that are being written: the file, the process and its thread."""


def expand_path(path: AnyPath) -> Path:
    """Return a path with the home folder for a leading ``~``; refuse one that is empty."""
    if not str(path):
        raise InputError("The name of a file or a folder must not be empty, got ''.")
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(
            f"The path {str(path)!r} must begin with the name of a folder, or with `~` of a user "
            "who has a home folder here. Write the path without `~`."
        ) from error


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write to a temporary file beside the path, and rename it once it is whole and on disk."""
    writer = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}.labelsure-tmp")
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):  # which names the temporary file, or none at all
            raise OSError(error.errno, error.strerror or first_line(error), str(path)) from error
        raise


STREAM_FOLDERS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""Whose entries stand for what is open already, so that no file can take their place."""


def is_stream(path: Path) -> bool:
    """Whether a path names a device or a pipe, into which one writes and which stays as it is."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return False
    is_open_already = path.parent in STREAM_FOLDERS and stat.S_ISREG(mode)
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or is_open_already


def write_output(path: Path, write: Callable[[Path], object]) -> None:
    """Write a whole file to where a link leads, or into a device or pipe."""
    if is_stream(path):
        with TemporaryDirectory() as folder:
            whole = Path(folder) / path.name
            write(whole)
            send_file(whole, path)
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "It is neither a file nor a pipe", str(path))
    write_whole(target, write)


def send_file(file: Path, stream: Path) -> None:
    """Write the content of a file into a device or a pipe."""
    with open(file, "rb") as source, open_stream(stream) as sink:
        shutil.copyfileobj(source, sink, CHUNK_BYTES)


@contextmanager
def open_stream(stream: Path) -> Iterator[IO[bytes]]:
    """Open a device or a pipe. The error names it if its reader has left, as for no other pipe."""
    with open(stream, "wb") as sink:
        try:
            yield sink
            sink.flush()
        except BrokenPipeError as error:
            if not has_reader(sink):
                sink.raw.close()  # `close` would write the rest, and fail again
                error.filename = str(stream)
            raise


def has_reader(sink: IO[Any]) -> bool:
    """Whether the other end of an open pipe is open too; true of files."""
    if not hasattr(select, "poll"):  # on Windows
        return False
    poll = select.poll()
    poll.register(sink, 0)  # errors and hang-ups only
    return not poll.poll(0)


def check_outputs(outputs: Iterable[AnyPath], inputs: Iterable[AnyPath]) -> None:
    """Refuse outputs that are an input, that lie in a folder of inputs, or that are one file."""
    read, written = [expand_path(given) for given in inputs], list[Path]()
    for output in map(expand_path, outputs):
        if is_stream(output):
            continue
        for other in read:
            is_inside = other.is_dir() and _real_path(other) in _real_path(output).parents
            if _is_same(output, other) or is_inside or _may_match(other, output):
                raise InputError(
                    f"The output {str(output)!r} must not be one of the inputs {str(other)!r}, nor "
                    "lie among them, now or in a later run. Choose another folder or name."
                )
        if any(_is_same(output, other) for other in written):
            raise InputError(
                f"Each output must be a file of its own, {str(output)!r} is given twice."
            )
        written.append(output)


def _may_match(pattern: Path, output: Path) -> bool:
    """Whether a pattern such as ``data/*.csv`` finds an output, or the parts beside it."""
    if not glob.has_magic(str(pattern)) or pattern.exists():
        return False
    folder = Path(re.split(r"[*?\[]", f"{pattern}")[0] + "x").parent
    is_below = _real_path(folder) in _real_path(output).parents
    return is_below and ("**" in str(pattern) or fnmatch(output.name, pattern.name))


def is_address(given: AnyPath) -> bool:
    """Whether an input is an address such as ``s3://bucket/data``, and no path."""
    scheme, mark, _ = str(given).partition("://")
    return bool(mark) and scheme.isalnum()


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths are one file, also by links, or will be."""
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return _real_path(one) == _real_path(other)


def _real_path(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"The file {str(path)!r} cannot be written: {error}.") from error


def check_output_file(output: AnyPath, inputs: Iterable[AnyPath]) -> None:
    """Refuse a place that cannot be written, or that is an input, before anything is computed."""
    check_outputs([output], inputs)
    place = expand_path(output)
    if is_stream(place):
        return
    folder = _real_path(place).parent
    if place.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(
            f"The output must be a file in a folder that exists and is yours, got {str(output)!r}."
        )


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed had begun to write into a folder, and nothing else."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in folder.iterdir():
        if is_leftover(path):
            path.unlink()


def is_leftover(path: Path) -> bool:
    """Whether a file is what a process that was killed had begun to write."""
    return bool(_TEMPORARY.fullmatch(path.name)) and path.is_file() and not path.is_symlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, as a whole."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""How Arrow calls the compression that a suffix stands for."""

CHUNK_BYTES = 2**20


def open_file(name: AnyPath) -> Any:
    """Open a file or an address for reading at any place, or say why it cannot be read."""
    if is_address(name):
        system, place = open_system(str(name))
        return ask_store(str(name), lambda: system.open_input_file(place))
    path = Path(name)
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise OSError("it is a device or a pipe, which may never end")
        return open(path, "rb")
    except FileNotFoundError as error:
        raise DataError(f"There is no file {str(path)!r}.{_suggest_name(path)}") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"The file {str(path)!r} cannot be read: {reason}.") from error


def open_native(name: AnyPath) -> Any:
    """Open a file or an address as Arrow does, which closes it by itself."""
    import pyarrow as pa

    file = open_file(name)
    if is_address(name):
        return file
    with file:
        try:
            return pa.OSFile(str(name))
        except UnicodeEncodeError:  # Arrow takes no name that is not UTF-8
            return pa.BufferReader(file.read())


def _suggest_name(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f" The folder {str(path.parent)!r} cannot be read either."
    near = get_close_matches(path.name, names, n=1)
    return (
        f" Did you mean {near[0]!r}? Check the name." if near else " Check the name and the folder."
    )


def find_codec(name: str) -> str | None:
    """Return how a file is compressed by its suffix; None where it is not."""
    return COMPRESSIONS.get(Path(without_options(name)).suffix.lower())


def without_options(name: str) -> str:
    """Return an address such as ``s3://bucket/t.csv?region=...`` without what follows the mark."""
    return name.partition("?")[0] if is_address(name) else name


def show_name(path: AnyPath) -> str:
    """Return the last part of a path or an address in quotes, as messages name a file."""
    return repr(Path(without_options(hide_secrets(str(path)))).name)


class UnpackedFile:
    """The bytes of a file from its beginning on, decompressed as its suffix says."""

    def __init__(self, name: AnyPath) -> None:
        self.name = str(name)
        codec = find_codec(self.name)
        if codec is None:
            self._file = open_file(name)
        else:
            import pyarrow as pa

            self._file = pa.CompressedInputStream(open_native(name), codec)

    def read(self, n_bytes: int) -> bytes:
        """Return the next bytes, fewer at the end only."""
        try:
            content: bytes = self._file.read(n_bytes)
            return content
        except OSError as error:
            raise DataError(
                f"The file {show_name(self.name)} is damaged, cut off or not compressed as its "
                f"name says ({first_line(error)}). Fetch it again."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_bytes(path: AnyPath, n_bytes: int = -1) -> bytes:
    """Return a file as it is on disk, unless it is too large, or the first bytes of it."""
    with open_file(path) as file:
        return _read_whole(file, path) if n_bytes < 0 else file.read(n_bytes)


def read_unpacked(path: AnyPath) -> bytes:
    """Return the content of a file, decompressed as its suffix says, unless it is too large."""
    with closing(UnpackedFile(path)) as file:
        return _read_whole(file, path)


def _read_whole(file: Any, path: AnyPath) -> bytes:
    from labelsure._runtime import limits as _limits  # only reading needs them

    chunks, n_bytes = list[bytes](), 0
    while chunk := file.read(CHUNK_BYTES):
        chunks.append(chunk)
        n_bytes += len(chunk)
        if n_bytes > _limits.MAX_FILE_BYTES:
            raise TooLargeError(
                f"The file {show_name(path)} must have at most "
                f"{_limits.format_bytes(_limits.MAX_FILE_BYTES)}, unpacked if it is compressed; it "
                "has more. Split it, or leave out what is not needed."
            )
    return b"".join(chunks)


def open_system(address: str) -> tuple[Any, str]:
    """Return the store of an address as Arrow or else fsspec opens it, and the place in it."""
    from pyarrow import ArrowException, fs

    with suppress(ArrowException, NotImplementedError):  # no store of Arrow's
        system, place = fs.FileSystem.from_uri(address)
        return system, str(place)
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise InputError(
            f"The address {address!r} needs the package fsspec, which is not installed. Install "
            "it: pip install 'labelsure[remote]', or copy the files here."
        ) from error
    system, place = ask_store(address, lambda: fsspec.core.url_to_fs(address))
    return fs.PyFileSystem(fs.FSSpecHandler(system)), str(place)


def ask_store(address: str, ask: Callable[[], Any]) -> Any:
    """Return what a store answers, or say in a sentence that it does not."""
    try:
        return ask()
    except FileNotFoundError as error:
        raise DataError(f"There is no file at {address!r}. Check the address.") from error
    except Exception as error:  # of whatever package opens such addresses
        raise InputError(
            f"The address {address!r} cannot be used ({type(error).__name__}: "
            f"{first_line(error)}). Check it, or copy the files here."
        ) from error


def first_line(error: object) -> str:
    """Return the first line of another library's message, without its full stop."""
    lines = str(error).strip().splitlines()
    if lines:
        return lines[0].rstrip(".")
    return type(error).__name__ if isinstance(error, BaseException) else "it gives no reason"


def suffix_of(path: Path) -> str:
    """Return the suffix that says the format, without that of the compression."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.suffix.lower()


def stem_of(path: Path) -> str:
    """Return the name without any of the suffixes that say format and compression."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.stem


def checksum_bytes(content: bytes) -> str:
    """Return the SHA-256 of some bytes."""
    return sha256(content).hexdigest()


def checksum_file(path: AnyPath) -> str:
    """Return the SHA-256 of a file as it is on disk."""
    return checksum_bytes(read_bytes(path))


def join_address(place: str, name: str) -> str:
    """Return the path or address of a file below a folder; options of an address stay behind."""
    base, mark, options = place.partition("?") if is_address(place) else (place, "", "")
    return f"{base.rstrip('/')}/{name}{mark}{options}"


class FinishedOutput:
    """The one rule for files that commands write.

    A file that the same inputs and settings have made is finished: nothing is left to do. Any other
    file is replaced on request only.

    Parameters
    ----------
    output
        The file; devices and pipes are never finished.
    made_from
        All that it depends on, as JSON can write it; anything else by its text.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     output = FinishedOutput(f"{folder}/sums.csv", {"inputs": [1, 2]})
    ...     before = output.find(overwrite=False)
    ...     _ = output.path.write_text("3")
    ...     output.note({"rows": 1})
    ...     after = output.find(overwrite=False)
    >>> before, after
    (None, {'rows': 1})
    """

    def __init__(self, output: AnyPath, made_from: Mapping[str, Any]) -> None:
        self.path = expand_path(output)
        self._made_from = json.loads(hide_secrets(json.dumps(made_from, default=str)))

    def find(self, *, overwrite: bool) -> JsonObject | None:
        """Return what was noted of the finished file; None where there is something to do."""
        if overwrite or is_stream(self.path) or not self.path.exists():
            return None
        noted = self._read()
        if noted is not None and noted.get("made_from") == self._made_from:
            found: JsonObject = noted["found"]
            return found
        why = "" if noted is None else ", made from other inputs or settings"
        raise InputError(
            f"{str(self.path)!r} exists already{why}. Choose another name, or say `overwrite` to "
            "replace a file."
        )

    def note(self, found: Mapping[str, object]) -> None:
        """Note that the file is finished."""
        if not is_stream(self.path):
            noted = {"output": self._state(), "made_from": self._made_from, "found": dict(found)}
            write_text(self._note, json.dumps(noted, indent=1) + "\n")

    @property
    def _note(self) -> Path:
        real = Path(os.path.realpath(self.path))
        return real.with_name(f".{real.name}.labelsure.json")

    def _state(self) -> list[int]:
        """Return the size and the time of the file, by which a changed one is noticed."""
        state = self.path.stat()
        return [state.st_size, state.st_mtime_ns]

    def _read(self) -> JsonObject | None:
        """Return the note of the file as it is; None where there is none."""
        try:
            noted = json.loads(self._note.read_text(encoding="utf-8"))
            is_whole = isinstance(noted["found"], dict) and noted["output"] == self._state()
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return noted if is_whole else None


def describe_file_state(name: str) -> list[Any]:
    """Return name, size and time of a file, by which a changed one is noticed."""
    if not is_address(name):
        with open_file(name) as file:
            status = os.fstat(file.fileno())
        return [name, status.st_size, status.st_mtime_ns]
    system, place = open_system(name)
    found = ask_store(name, lambda: system.get_file_info(place))
    return [hide_secrets(name), found.size, found.mtime_ns]


def describe_files(inputs: Iterable[AnyPath]) -> list[list[object]]:
    """Return the states of files and of those in folders."""
    paths = [expand_path(given) for given in inputs]
    inside = (sorted(path.rglob("[!._]*")) if path.is_dir() else [path] for path in paths)
    return [describe_file_state(str(file)) for files in inside for file in files if file.is_file()]


LOCK, OWNER = ".lock", ".owner"


def make_folder(folder: Path, what: str) -> None:
    """Make a folder that can be written to, or say why it cannot be used."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, FileExistsError):
            reason = "Not a directory"  # which is what the system means
        raise InputError(
            f"{what} {str(folder)!r} cannot be written to ({reason}). Choose another one."
        ) from error


@contextmanager
def hold_folder(folder: Path, what: str) -> Iterator[None]:
    """Keep a folder for this process, or say who has it.

    The lock is the operating system's, which gives it up when a process ends, however it ends.
    """
    from filelock import FileLock, Timeout  # only runs need it

    lock = folder / LOCK
    if lock.is_symlink():
        raise InputError(
            f"The lock of {what}, {str(lock)!r}, must be a file, but it is a link to another "
            "place, where nothing must be locked or written. Remove it."
        )
    owner = folder / OWNER  # not in the file that is locked, which Windows would let nobody read
    holder = FileLock(lock, blocking=False)  # another run may take hours
    try:
        holder.acquire()
    except Timeout as error:
        name = owner.read_text().strip() if owner.is_file() else ""
        raise InputError(
            f"Another run (process {name or 'unknown'}) is at work in {str(folder)!r}. Wait until "
            "it ends, or choose another folder."
        ) from error
    try:
        write_text(owner, str(os.getpid()))
        yield
    finally:
        holder.release()
