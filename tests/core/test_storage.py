"""Files are there as a whole or not at all."""

import pytest

from labelsure._storage import TEMPORARY, write_text, write_whole


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


def test_a_file_that_is_being_written_can_be_told_from_others(tmp_path):
    seen = []
    write_whole(
        tmp_path / "table.md",
        lambda temporary: (temporary.touch(), seen.extend(tmp_path.glob(TEMPORARY))),
    )
    assert len(seen) == 1
    assert seen[0].parent == tmp_path
