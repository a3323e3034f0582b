"""Files: atomic writes, remote addresses, compression."""

from __future__ import annotations

import errno
import glob
import os
import re
import select
import shutil
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from difflib import get_close_matches
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

from labelsure.errors import DataError, InputError, TooLargeError, hide_secrets

if TYPE_CHECKING:
    from labelsure._runtime.typing import AnyPath  # loads NumPy; help does without


def expand_path(path: AnyPath) -> Path:
    """Path with the home folder for a leading ``~``. Raises InputError for an empty path."""
    if not str(path):
        raise InputError("The name of a file or a folder must not be empty, got ''.")
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(
            f"The path {str(path)!r} must begin with the name of a folder, or with `~` of a user "
            "who has a home folder here. Write the path without `~`."
        ) from error


def write_whole(
    path: Path, write: Callable[[Path], object], permissions_of: Path | None = None
) -> None:
    """Write to a temporary file beside the path, and rename it once it is complete and on disk.

    From the first byte on it has the permissions of the file that it replaces, or of another one.
    """
    writer = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}.labelsure-tmp")
    try:
        with suppress(FileNotFoundError):
            mode = (permissions_of or path).stat().st_mode
            temporary.touch(mode=0o600)
            temporary.chmod(mode & 0o777 | 0o600)
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):  # whose file name is the temporary one or missing
            raise OSError(error.errno, error.strerror or first_line(error), str(path)) from error
        raise


STREAM_FOLDERS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""Folders whose entries are open files, which no new file can replace."""


def is_stream(path: Path) -> bool:
    """Whether a path is a device or a pipe, which is written to and never replaced."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return False
    is_open_already = path.parent in STREAM_FOLDERS and stat.S_ISREG(mode)
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or is_open_already


def write_output(path: Path, write: Callable[[Path], object]) -> None:
    """Write a whole file to the target of a link, or into a device or pipe."""
    if is_stream(path):
        with TemporaryDirectory() as folder:
            whole = Path(folder) / path.name
            write(whole)
            with open(whole, "rb") as source, open_stream(path) as sink:
                shutil.copyfileobj(source, sink, CHUNK_BYTES)
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "It is neither a file nor a pipe", str(path))
    write_whole(target, write)


@contextmanager
def open_stream(stream: Path) -> Iterator[IO[bytes]]:
    """Yield a device or pipe for writing. BrokenPipeError names it only if its reader has left."""
    with open(stream, "wb") as sink:
        try:
            yield sink
            sink.flush()
        except BrokenPipeError as error:
            if not has_reader(sink):
                sink.raw.close()  # `close` would flush the buffer, and fail again
                error.filename = str(stream)
            raise


def has_reader(sink: IO[Any]) -> bool:
    """Whether the other end of an open pipe is open too; true for files."""
    if not hasattr(select, "poll"):  # on Windows
        return False
    poll = select.poll()
    poll.register(sink, 0)  # errors and hang-ups only
    return not poll.poll(0)


def check_outputs(outputs: Iterable[AnyPath], inputs: Iterable[AnyPath]) -> None:
    """Raise InputError for outputs that are an input, lie in a folder of inputs, or coincide."""
    input_paths, output_paths = [expand_path(name) for name in inputs], list[Path]()
    for output in map(expand_path, outputs):
        if is_stream(output):
            continue
        for other in input_paths:
            is_inside = other.is_dir() and _real_path(other) in _real_path(output).parents
            if _is_same(output, other) or is_inside or _may_match(other, output):
                raise InputError(
                    f"The output {str(output)!r} must not be one of the inputs {str(other)!r}, nor "
                    "lie among them, now or in a later run. Choose another folder or name."
                )
        if any(_is_same(output, other) for other in output_paths):
            raise InputError(
                f"Each output must be a file of its own, {str(output)!r} is given twice."
            )
        output_paths.append(output)


def _may_match(pattern: Path, output: Path) -> bool:
    """Whether a pattern such as ``data/*.csv`` matches an output, or the parts beside it."""
    if not glob.has_magic(str(pattern)) or pattern.exists():
        return False
    folder = Path(re.split(r"[*?\[]", f"{pattern}")[0] + "x").parent
    is_below = _real_path(folder) in _real_path(output).parents
    return is_below and ("**" in str(pattern) or fnmatch(output.name, pattern.name))


def is_address(name: AnyPath) -> bool:
    """Whether an input is an address such as ``s3://bucket/data``, and no path."""
    scheme, mark, _ = str(name).partition("://")
    return bool(mark) and scheme.isalnum()


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths are one file, also by links, or would be if they existed."""
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return _real_path(one) == _real_path(other)


def _real_path(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"The file {str(path)!r} cannot be written: {error}.") from error


def check_output_file(output: AnyPath, inputs: Iterable[AnyPath]) -> None:
    """Raise InputError for an output that cannot be written, or that is an input."""
    check_outputs([output], inputs)
    path = expand_path(output)
    if is_stream(path):
        return
    folder = _real_path(path).parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(
            f"The output must be a file in a folder that exists and is yours, got {str(output)!r}."
        )


def write_text(path: Path, text: str, permissions_of: Path | None = None) -> None:
    """Write a text file in UTF-8, as a whole."""
    write_whole(
        path, lambda temporary: temporary.write_text(text, encoding="utf-8"), permissions_of
    )


COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Arrow's name of the compression of a suffix."""

CHUNK_BYTES = 2**20


def open_file(name: AnyPath) -> Any:
    """File or address, open for reading at any position. Raises DataError if it cannot be read."""
    if is_address(name):
        system, place = open_system(str(name))
        return call_store(str(name), lambda: system.open_input_file(place))
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
    """File or address as an open file of Arrow, which Arrow closes."""
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
    """Compression of a file by its suffix; None where there is none."""
    return COMPRESSIONS.get(Path(without_options(name)).suffix.lower())


def without_options(name: str) -> str:
    """Address such as ``s3://bucket/t.csv?region=...`` without its options."""
    return name.partition("?")[0] if is_address(name) else name


def show_name(path: AnyPath) -> str:
    """Last part of a path or an address in quotes, for messages."""
    return repr(Path(without_options(hide_secrets(str(path)))).name)


class UnpackedFile:
    """Forward reader of the bytes of a file, decompressed by its suffix."""

    def __init__(self, name: AnyPath) -> None:
        self.name = str(name)
        codec = find_codec(self.name)
        if codec is None:
            self._file = open_file(name)
        else:
            import pyarrow as pa

            self._file = pa.CompressedInputStream(open_native(name), codec)

    def read(self, n_bytes: int) -> bytes:
        """The next `n_bytes` bytes, fewer at the end only."""
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
    """Content of a file as stored, or its first bytes. Raises TooLargeError."""
    with open_file(path) as file:
        return _read_whole(file, path) if n_bytes < 0 else file.read(n_bytes)


def read_unpacked(path: AnyPath) -> bytes:
    """Content of a file, decompressed by its suffix. Raises TooLargeError."""
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
    """(file system of an address, by Arrow or else by fsspec; path in it)."""
    from pyarrow import ArrowException, fs

    with suppress(ArrowException, NotImplementedError):  # no store of Arrow's
        try:
            system, place = fs.FileSystem.from_uri(address)
        except OSError as error:  # a library of the store that is missing, such as libhdfs
            raise InputError(
                f"The address {address!r} cannot be used ({first_line(error)}). Check it, or copy "
                "the files here."
            ) from error
        return system, str(place)
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise InputError(
            f"The address {address!r} needs the package fsspec, which is not installed. Install "
            "it: pip install 'labelsure[remote]', or copy the files here."
        ) from error
    system, place = call_store(address, lambda: fsspec.core.url_to_fs(address))
    return fs.PyFileSystem(fs.FSSpecHandler(system)), str(place)


def call_store(address: str, call: Callable[[], Any]) -> Any:
    """Result of a call to a remote store. Raises DataError or InputError if it fails."""
    try:
        return call()
    except FileNotFoundError as error:
        raise DataError(f"There is no file at {address!r}. Check the address.") from error
    except Exception as error:  # packages of stores raise many types
        raise InputError(
            f"The address {address!r} cannot be used ({type(error).__name__}: "
            f"{first_line(error)}). Check it, or copy the files here."
        ) from error


def first_line(error: object) -> str:
    """First line of another library's message, without its full stop."""
    lines = str(error).strip().splitlines()
    if lines:
        return lines[0].rstrip(".")
    return type(error).__name__ if isinstance(error, BaseException) else "it gives no reason"


def suffix_of(path: Path) -> str:
    """Suffix of the format, without that of the compression."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.suffix.lower()


def stem_of(path: Path) -> str:
    """Name without the suffixes of format and compression."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.stem


def checksum_bytes(content: bytes) -> str:
    """SHA-256 of some bytes, in hexadecimal."""
    return sha256(content).hexdigest()


def checksum_file(path: AnyPath) -> str:
    """SHA-256 of a file as stored, in hexadecimal."""
    return checksum_bytes(read_bytes(path))


def join_address(place: str, name: str) -> str:
    """Path or address of a file in a folder; options of an address follow the name."""
    base, mark, options = place.partition("?") if is_address(place) else (place, "", "")
    return f"{base.rstrip('/')}/{name}{mark}{options}"


def describe_file_state(name: str) -> list[Any]:
    """Name, size and modification time of a file, which differ after a change."""
    if not is_address(name):
        with open_file(name) as file:
            status = os.fstat(file.fileno())
        return [name, status.st_size, status.st_mtime_ns]
    system, place = open_system(name)
    info = call_store(name, lambda: system.get_file_info(place))
    return [hide_secrets(name), info.size, info.mtime_ns]


def describe_files(inputs: Iterable[AnyPath]) -> list[list[object]]:
    """Name, size and modification time of files, and of all files in folders."""
    paths = [expand_path(name) for name in inputs]
    inside = (sorted(path.rglob("[!._]*")) if path.is_dir() else [path] for path in paths)
    return [describe_file_state(str(file)) for files in inside for file in files if file.is_file()]
