"""Descriptions and tags of Debian's programs, read from package lists in a temporary folder."""

import re
import subprocess
import tempfile
from pathlib import Path

import pandas as pd


def read_fields(text):
    """Yield a dict of fields for each paragraph of a package list."""
    for paragraph in text.split("\n\n"):
        yield dict(
            re.findall(
                r"^([\w-]+): ?(.*(?:\n[ \t].*)*)", paragraph, re.MULTILINE
            )
        )


def read_packages():
    """Return a frame with the columns `text` and `tags` (lists), by package.

    None where apt-get has no package lists to read.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _download(Path(folder))
    except (OSError, subprocess.SubprocessError):
        return None


def _download(folder):
    (folder / "lists" / "partial").mkdir(parents=True)
    options = [f"-oDir::State::lists={folder}/lists", f"-oDir::Cache={folder}"]
    update = ["apt-get", "update", "-qq", *options, "-oAcquire::Languages=en"]
    subprocess.run(update, check=True, capture_output=True, timeout=300)

    def read(pattern):
        for file in sorted((folder / "lists").glob(pattern)):
            cat = ["/usr/lib/apt/apt-helper", "cat-file", str(file)]
            done = subprocess.run(cat, check=True, capture_output=True)
            yield from read_fields(done.stdout.decode())

    texts = {
        fields["Package"]: fields["Description-en"]
        for fields in read("*i18n_Translation-en*")
        if "Package" in fields
    }
    rows = {}
    for fields in read("*_Packages*"):
        tags = re.split(r",\s+", fields.get("Tag", ""))
        if "role::program" in tags and fields["Package"] in texts:
            rows[fields["Package"]] = (texts[fields["Package"]], tags)
    return pd.DataFrame.from_dict(
        rows, orient="index", columns=["text", "tags"]
    ).sort_index()
