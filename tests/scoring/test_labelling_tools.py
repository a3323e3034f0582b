"""Tasks for Label Studio and records for Argilla: what they hold, in which order they come."""

import json

import pytest
from scored_files import LABELS, make_model, make_rows

from labelsure.scoring import label_studio_config, score_files
from labelsure.scoring._labelling_tools import TOOLS

N_ROWS = 90


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    make_model().save(folder / "model.labelsure")
    rows = make_rows(N_ROWS).assign(text=[f'Ticket {i}: "é"\n<b>' for i in range(N_ROWS)])
    rows.to_parquet(folder / "new.parquet")
    for tool in TOOLS:
        score_files(
            folder / "model.labelsure",
            folder / "new.parquet",
            folder / f"{tool}.json",
            tool=tool,
            id_column="id",
            audit=20,
            rows_per_unit=25,
            n_jobs=1,
        )
    return folder


@pytest.fixture(scope="module")
def table():
    rows = make_rows(N_ROWS)
    found = make_model().assess(rows.drop(columns="id")).to_frame()
    return found.set_axis(rows["id"])


def read(folder, tool):
    return json.loads((folder / f"{tool}.json").read_text("utf-8"))


def check_order(accepted, accuracies, ids, table):
    assert sorted(ids) == sorted(table.index)
    assert 0 < sum(accepted) < N_ROWS
    assert accepted == sorted(accepted)
    n_referred = accepted.index(True)
    for part in (accuracies[:n_referred], accuracies[n_referred:]):
        assert part == sorted(part)
    assert accuracies == pytest.approx(table.loc[ids, "estimated_accuracy"].tolist())


def test_tasks_of_label_studio(folder, table):
    tasks = read(folder, "label-studio")
    data = [task["data"] for task in tasks]
    ids = [one["id"] for one in data]
    accepted = [one["labelsure_accept"] for one in data]
    check_order(accepted, [one["labelsure_estimated_accuracy"] for one in data], ids, table)
    assert [one["labelsure_chosen_by"] for one in data].count("chance") == 20
    for task, identifier in zip(tasks, ids, strict=True):
        (prediction,) = task["predictions"]
        (result,) = prediction["result"]
        assert task["data"]["text"] == f'Ticket {identifier[1:]}: "é"\n<b>'
        assert prediction["score"] == task["data"]["labelsure_estimated_accuracy"]
        assert tuple(result["value"]["choices"]) == table.loc[identifier, "predicted"]
        assert task["data"]["labelsure_reason"] == table.loc[identifier, "reason"]


def test_records_of_argilla(folder, table):
    records = read(folder, "argilla")
    metadata = [record["metadata"] for record in records]
    accepted = [one["accept"] for one in metadata]
    ids = [record["id"] for record in records]
    check_order(accepted, [one["estimated_accuracy"] for one in metadata], ids, table)
    assert [one["chosen_by"] for one in metadata].count("chance") == 20
    for record in records:
        suggestion = record["suggestions"]["labels"]
        assert tuple(suggestion["value"]) == table.loc[record["id"], "predicted"]
        assert suggestion["score"] == record["metadata"]["estimated_accuracy"]
        assert record["fields"]["text"] == f'Ticket {record["id"][1:]}: "é"\n<b>'
        assert isinstance(record["fields"]["a"], str)


def test_without_ids_audit_and_target(tmp_path):
    """Argilla needs an id of its own; nothing says why a row is there; none is accepted."""
    make_model(None).save(tmp_path / "model.labelsure")
    rows = make_rows(5).drop(columns="id").assign(note=["a", None, "b", "c", "d"])
    rows.to_parquet(tmp_path / "new.parquet")
    for tool in TOOLS:
        out = tmp_path / f"{tool}.json"
        arguments = (tmp_path / "model.labelsure", tmp_path / "new.parquet", out)
        score_files(*arguments, tool=tool, n_jobs=1)
    records = read(tmp_path, "argilla")
    assert {record["id"] for record in records} == {
        f"{tmp_path / 'new.parquet'}:{i}" for i in range(5)
    }
    assert all("chosen_by" not in record["metadata"] for record in records)
    assert all("accept" not in record["metadata"] for record in records)
    accuracies = [record["metadata"]["estimated_accuracy"] for record in records]
    assert accuracies == sorted(accuracies)
    notes = {record["metadata"]["row"]: record["fields"]["note"] for record in records}
    assert notes[1] == ""
    tasks = read(tmp_path, "label-studio")
    assert {task["data"]["labelsure_row"]: task["data"]["note"] for task in tasks}[1] is None


def test_label_studio_takes_them(folder):
    interface = pytest.importorskip(
        "label_studio_sdk.label_interface", reason="the extra `labelling` is not installed"
    )
    config = interface.LabelInterface(label_studio_config(LABELS, "text"))
    config.validate()
    for task in read(folder, "label-studio"):
        # Without predictions, for which it calls the next method wrongly.
        assert config.validate_task({"data": task["data"]})
        for prediction in task["predictions"]:
            assert config.validate_prediction(prediction, return_errors=True) == []


def test_label_studio_refuses_other_labels(folder):
    interface = pytest.importorskip(
        "label_studio_sdk.label_interface", reason="the extra `labelling` is not installed"
    )
    config = interface.LabelInterface(label_studio_config(["other"], "text"))
    predictions = [task["predictions"][0] for task in read(folder, "label-studio")]
    chosen = [one for one in predictions if one["result"][0]["value"]["choices"]]
    assert not config.validate_prediction(chosen[0])


def test_argilla_takes_them(folder):
    argilla = pytest.importorskip("argilla", reason="the extra `labelling` is not installed")
    from argilla.records._io import JsonIO

    records = JsonIO._records_from_json(folder / "argilla.json")
    assert len(records) == N_ROWS
    for record in records:
        assert isinstance(record, argilla.Record)
        assert set(record.suggestions["labels"].value) <= set(LABELS)
        record.api_model()


def test_a_configuration_with_strange_names():
    text = label_studio_config(['a"b', "<c>", "d&e"], "text")
    import xml.etree.ElementTree as ElementTree

    choices = ElementTree.fromstring(text).iter("Choice")
    assert [choice.get("value") for choice in choices] == ['a"b', "<c>", "d&e"]
