"""The rows of text files as Python's own readers have them; nothing of the package is used."""

import csv
import io
import json


def csv_rows(text, delimiter):
    """The header and the rows of a CSV file, empty lines being none."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header, *rows = [row for row in reader if row]
    return header, rows


def csv_lines(text, delimiter):
    """The line in which each row begins, from 1, the header not among them."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    lines, before = [], 0
    for row in reader:
        if row:
            lines.append(before + 1)
        before = reader.line_num
    return lines[1:]


def json_rows(text):
    """What each line holds that is not empty."""
    return [json.loads(line) for line in text.splitlines() if line]


def ends_in_quotes(text, delimiter=","):
    """Whether a quote is open after the last line end: then what follows is no row of its own."""
    reader = csv.reader(io.StringIO(text + "x", newline=""), delimiter=delimiter)
    return list(reader)[-1] != ["x"]


def cut(n_rows, rows):
    """The first row and the number of rows of each unit."""
    return [(first, min(rows, n_rows - first)) for first in range(0, n_rows, rows)]
