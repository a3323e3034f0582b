"""Users, passwords and keys in addresses: neither messages nor files show them."""

import pytest
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure.cli._app import main
from labelsure.errors import hide_secrets
from labelsure.tables.files import list_files
from labelsure.tables.scoring import score_files

fsspec = pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
ADDRESS = "memory://user:topsecret@folder"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("'s3://key:secret@bucket/x.csv'", "'s3://***@bucket/x.csv'"),
        ("s3://key@bucket", "s3://***@bucket"),
        ("https://u:p@ss@host/a@b and c@d", "https://***@host/a@b and c@d"),
        ("https://host/x?Access_Key=1&b=2&X-Amz-Signature=3", None),
        ("s3://key:a/b+c/d@bucket/x.csv", "s3://***@bucket/x.csv"),
        ("https://host/x?sv=1&sig=a%2Fb&se=2", "https://host/x?sv=1&sig=***&se=2"),
        ("https://host/x?code=1&auth=2&pwd=3", "https://host/x?code=***&auth=***&pwd=***"),
        ("hdfs://host/x?kerb_ticket=1&user=me", "hdfs://host/x?kerb_ticket=***&user=me"),
        ("gs://b/x?GoogleAccessId=1&jwt=2", "gs://b/x?GoogleAccessId=***&jwt=***"),
        ("https://host:8080/a@b?design=1", "https://host:8080/a@b?design=1"),
        ("'s3:/key:secret@bucket/m'", "'s3:/***@bucket/m'"),
        ("memory://host/a and b@c", "memory://host/a and b@c"),
        ("no@address", "no@address"),
    ],
)
def test_what_is_hidden(text, shown):
    expected = shown or "https://host/x?Access_Key=***&b=2&X-Amz-Signature=***"
    assert hide_secrets(text) == expected
    assert str(ls.InputError(text)) == expected
    assert hide_secrets(expected) == expected


@pytest.mark.parametrize("address", [f"{ADDRESS}/none.csv", "nothing://user:topsecret@host/x.csv"])
def test_errors_show_no_password(address, capsys, tmp_path):
    with pytest.raises(ls.InputError, match=r"://\*\*\*@") as caught:
        list_files(address)
    assert "topsecret" not in str(caught.value)
    make_model().save(tmp_path / "m")
    assert main(["score", str(tmp_path / "m"), address, "--out", str(tmp_path / "o.csv")]) == 2
    assert "topsecret" not in capsys.readouterr().err


@pytest.mark.parametrize("inputs", [ADDRESS, f"{ADDRESS}/a.csv"])
@pytest.mark.parametrize("out", ["out.csv", "parts"])
def test_no_file_and_no_summary_shows_a_password(inputs, out, tmp_path, capsys):
    with fsspec.open(f"{ADDRESS}/a.csv", "w") as file:
        make_rows(20).to_csv(file, index=False)
    make_model().save(tmp_path / "m")
    words = [str(tmp_path / "m"), inputs]
    assert main(["score", *words, "--out", str(tmp_path / out), "--jobs", "1"]) == 0
    report = ["--scored", str(tmp_path / out), "--out", str(tmp_path / "page.html")]
    assert main(["report", *words, *report]) == 0
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) >= 4
    for path in written:
        assert b"topsecret" not in path.read_bytes(), path
    printed = capsys.readouterr()
    assert "topsecret" not in printed.out + printed.err
    run = score_files(*words, tmp_path / out, n_jobs=1)
    assert run.n_kept == run.n_parts  # which the hidden address still finds
