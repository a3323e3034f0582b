"""Whatever words a command has: an exit code, one sentence, and nothing touched but `--out`."""

import sys

import pytest
from abuse.command_lines import World, alone, try_command_lines


def test_words_at_random(tmp_path):
    counts, wrong = try_command_lines(300, tmp_path)
    assert wrong == []
    assert counts.total() == 300
    assert counts["exit code 0"] > 40
    assert counts["exit code 2"] > 100


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize(
    ("code", "said", "touched", "ending"),
    [
        (0, "all is well", None, "exit code 0"),
        (0, "", "out/file", "exit code 0"),
        (0, "", "file", "TOUCHED ANOTHER FILE"),
        (0, "", "new", "TOUCHED ANOTHER FILE"),
        (2, "labelsure: This is wrong.", None, "exit code 2"),
        (2, "This is wrong.", None, "0 SENTENCES"),
        (2, "labelsure: This is wrong", None, "1 SENTENCES"),
        (2, "labelsure: One.\nlabelsure: Two.", None, "2 SENTENCES"),
        (0, "labelsure: This is wrong.", None, "1 SENTENCES"),
        (70, "labelsure: This should not have happened.", None, "EXIT CODE 70"),
        (1, "", None, "EXIT CODE 1"),
        (0, "Traceback (most recent call last):", None, "TRACEBACK"),
        (None, "", None, "RAISED KeyError"),
    ],
)
def test_what_is_wrong_is_noticed(world, monkeypatch, code, said, touched, ending):
    def command(words):
        print(said, file=sys.stderr)
        if touched:
            (world.folder / touched).write_text("changed")
        return {0: 0, 1: 1, 2: 2, 70: 70}[code]

    monkeypatch.setattr("abuse.command_lines.run_command", command)
    with alone(world):
        assert world.try_words(["data", "list"]) == ending
