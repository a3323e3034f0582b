"""Whatever words a command has: an exit code, one sentence, and nothing touched but `--out`."""

from abuse.command_lines import World, alone, try_command_lines


def test_words_at_random(tmp_path):
    counts, wrong = try_command_lines(300, tmp_path)
    assert wrong == []
    assert counts.total() == 300
    assert counts["exit code 0"] > 40
    assert counts["exit code 2"] > 100


def test_what_is_wrong_would_be_noticed(tmp_path, monkeypatch):
    world = World(tmp_path)

    def run(code, said, touched=None):
        def command(words):
            import sys

            print(said, file=sys.stderr)
            if touched:
                touched.write_text("changed")
            return code

        monkeypatch.setattr("abuse.command_lines.run_command", command)
        with alone(world):
            return world.try_words(["data", "list"])

    assert run(0, "all is well") == "exit code 0"
    assert run(2, "labelsure: This is wrong.") == "exit code 2"
    assert run(2, "This is wrong.") == "0 SENTENCES"
    assert run(0, "labelsure: This is wrong.") == "1 SENTENCES"
    assert run(2, "labelsure: This is wrong") == "1 SENTENCES"
    assert run(2, "labelsure: One.\nlabelsure: Two.") == "2 SENTENCES"
    assert run(70, "labelsure: This should not have happened.") == "EXIT CODE 70"
    assert run(1, "") == "EXIT CODE 1"
    assert run(0, "Traceback (most recent call last):") == "TRACEBACK"
    assert run(0, "", tmp_path / "file") == "TOUCHED ANOTHER FILE"
    assert run(0, "", tmp_path / "out" / "file") == "exit code 0"
