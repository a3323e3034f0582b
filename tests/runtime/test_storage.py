"""Files are there as a whole or not at all."""

import os
import threading
import time

import pytest
from filelock import FileLock

from labelsure._runtime.runs import LOCK, OWNER, locked_folder, remove_leftovers
from labelsure._runtime.storage import expand_path, write_text, write_whole
from labelsure.errors import InputError


def test_what_is_written_is_what_was_said(tmp_path):
    write_text(tmp_path / "table.md", "first é")
    write_text(tmp_path / "table.md", "second")
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["table.md"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, error):
    path = tmp_path / "table.md"
    write_text(path, "old")

    def fail_halfway(temporary):
        temporary.write_text("ne")
        raise error

    with pytest.raises(type(error)):
        write_whole(path, fail_halfway)
    assert path.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.md"]


def killed_while_writing(path):
    """Leave behind what a process leaves that is killed halfway."""

    def copy_away(temporary):
        temporary.write_text("half")
        copied.append((temporary, temporary.read_text()))

    copied = []
    write_whole(path, copy_away)
    path.unlink()
    ((temporary, text),) = copied
    temporary.write_text(text)
    return temporary


def test_leftovers_are_removed_and_nothing_else(tmp_path):
    left = [killed_while_writing(tmp_path / name) for name in ("a.parquet", "b", ".c", "d\n.md")]
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / ".folder.1-2.labelsure-tmp").mkdir()
    (tmp_path / "target").write_text("mine")
    (tmp_path / ".link.1-2.labelsure-tmp").symlink_to(tmp_path / "target")
    mine = [
        killed_while_writing(inner / "a.parquet"),
        *(tmp_path / name for name in (".mine.tmp", ".a.1-2.tmp", "a.1-2.labelsure-tmp", "~x.tmp")),
        tmp_path / "..1-2.labelsure-tmp",
        tmp_path / ".a.1-2.labelsure-tmp.old",
        tmp_path / ".a.1-x.labelsure-tmp",
    ]
    for path in mine:
        path.write_text("mine")
    before = set(tmp_path.rglob("*"))
    remove_leftovers(tmp_path)
    assert before - set(tmp_path.rglob("*")) == set(left)
    linked = tmp_path / "linked"
    linked.symlink_to(inner)
    for folder in (linked, tmp_path / "none", tmp_path / "target"):
        remove_leftovers(folder)
    assert mine[0].exists()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError(28, "No space left on device", ".table.md.1-2.labelsure-tmp"), "No space left"),
        (OSError("[Errno 28] Error writing bytes to file.\nDetail: ..."), "Error writing bytes"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(tmp_path, error, reason):
    def fail(temporary):
        raise error

    path = tmp_path / "table.md"
    with pytest.raises(OSError, match=reason) as caught:
        write_whole(path, fail)
    assert caught.value.filename == str(path)
    assert caught.value.errno == error.errno
    assert caught.value.__cause__ is error


def test_a_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expand_path("~/x") == tmp_path / "x"
    assert expand_path(tmp_path / "~") == tmp_path / "~"
    with pytest.raises(InputError, match="begin"):
        expand_path("~no-such-user/x")


@pytest.mark.parametrize("umask", [0o022, 0o077])
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o644, 0o666])
def test_a_replaced_file_keeps_its_permissions_while_it_is_written(tmp_path, permissions, umask):
    path, record, seen = tmp_path / "a", tmp_path / "record", []
    path.touch()
    path.chmod(permissions)

    def write(temporary):
        seen.append(temporary.stat().st_mode & 0o777)
        temporary.write_text("new")

    before = os.umask(umask)
    try:
        write_whole(path, write)
        write_text(record, "its record", path)
    finally:
        os.umask(before)
    assert path.read_text() == "new"
    assert seen == [permissions]
    assert [file.stat().st_mode & 0o777 for file in (path, record)] == [permissions, permissions]


def test_the_owner_of_a_lock_is_named_though_it_says_so_a_moment_later(tmp_path):
    def hold():
        with FileLock(tmp_path / LOCK):
            is_locked.set()
            time.sleep(0.2)
            (tmp_path / OWNER).write_text("4321")
            is_refused.wait(30)

    is_locked, is_refused = threading.Event(), threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert is_locked.wait(30)
        with pytest.raises(InputError, match="process 4321"), locked_folder(tmp_path, "A folder"):
            pass
    finally:
        is_refused.set()
        holder.join()
