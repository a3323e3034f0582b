"""Files that are not ours, or that someone wrote to do harm: one sentence, and no code is run."""

import io
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
import saved_files as sf
import skops.io
from saved_files import dict_node, list_node, node, text_node
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning

import labelsure as ls
from labelsure.saving import OWN_TYPES

CHECK_OUTPUT = "sklearn.utils._testing.check_output"
TRUSTED = "must name trusted types only, got "
CHANGED = "is damaged or changed"
POLICY = "labelsure.guarantees._policy.AcceptPolicy"
NEVER = "can run code and is never loaded"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.labelsure"


@pytest.fixture(autouse=True)
def no_process_is_started(monkeypatch):
    """`pytest.fail` raises what no `except Exception` catches."""
    for name in ("system", "posix_spawn", "fork", "execv", "popen"):
        monkeypatch.setattr(os, name, lambda *_, **__: pytest.fail("a process was started"))


def assert_refused(path, message, **settings):
    with pytest.raises(ls.DataError, match=message) as caught:
        ls.load(path, **settings)
    assert "\n" not in str(caught.value)


def insert(tmp_path, hostile):
    """A valid file with one more attribute, which is the hostile node."""

    def change(schema):
        attributes = schema["content"]
        attributes["content"] = {"extra": hostile, **attributes["content"]}
        attributes["key_types"]["content"].insert(0, node("TypeNode", "builtins.str"))

    return sf.change_json(sf.content_of("BinaryRelevance", tmp_path), "schema.json", change)


def command(marker, loader="ListNode", name=CHECK_OUTPUT):
    return list_node(text_node("touch"), text_node(str(marker)), loader=loader, name=name)


def test_the_file_that_ran_a_command_runs_none(tmp_path, path):
    marker = tmp_path / "marker"
    content = insert(tmp_path, command(marker))
    path.write_bytes(content)
    assert_refused(path, TRUSTED + CHECK_OUTPUT)
    assert not marker.exists()
    # The file is what it is said to be: where the function is trusted, it is called.
    skops.io.loads(content, trusted=[*OWN_TYPES, CHECK_OUTPUT])
    assert marker.exists()


def kinds_of_harm(marker):
    function = node("FunctionNode", CHECK_OUTPUT)
    arguments = list_node(
        text_node(["touch", str(marker)]), loader="TupleNode", name="builtins.tuple"
    )
    nothing = dict_node({})
    call = {"args": arguments}
    partial = {"func": function, "args": arguments, "kwds": nothing, "namespace": text_node(None)}
    state = {"content": dict_node({"bit_generator": text_node("seed")})}
    return {
        "set": (command(marker, "SetNode"), TRUSTED),
        "tuple": (command(marker, "TupleNode"), TRUSTED),
        "function": (function, NEVER),
        "trusted by skops": (node("FunctionNode", "numpy.exp"), NEVER),
        "type": (node("TypeNode", CHECK_OUTPUT), TRUSTED),
        "type of a key": (
            dict_node({f"touch {marker}": text_node(1)}, [node("TypeNode", "os.system")]),
            TRUSTED + "os.system",
        ),
        "own type of a key": (
            dict_node({"k": text_node(1)}, [node("TypeNode", POLICY)]),
            TRUSTED + POLICY,
        ),
        "object": (node("ObjectNode", "subprocess.Popen", content=arguments), TRUSTED),
        "call": (
            node("ConstructorFromReduceNode", "subprocess.Popen", content=arguments),
            TRUSTED + "subprocess.Popen",
        ),
        "call of a trusted type": (
            node("ConstructorFromReduceNode", "labelsure.AcceptPolicy", content=arguments),
            TRUSTED + "labelsure.AcceptPolicy",
        ),
        "call of a trusted type by its module": (
            node("ConstructorFromReduceNode", POLICY, content=arguments),
            TRUSTED + POLICY,
        ),
        "call of a plain type": (
            node("ConstructorFromReduceNode", "numpy.dtype", content=arguments),
            TRUSTED + "numpy.dtype",
        ),
        "loss": (node("LossNode", CHECK_OUTPUT, content=nothing, __reduce__=call), TRUSTED),
        "tree": (
            node("TreeNode", "sklearn.tree._tree.Tree", content=nothing, __reduce__=call),
            CHANGED,
        ),
        "reduce": (node("ReduceNode", "os.system", content=nothing, __reduce__=call), NEVER),
        "partial": (node("PartialNode", "functools.partial", content=partial), NEVER),
        "method": (
            node("MethodNode", "labelsure.AcceptPolicy", content={"func": "save", "obj": nothing}),
            NEVER,
        ),
        "operator": (node("OperatorFuncNode", "operator.methodcaller", attrs=arguments), NEVER),
        "forest": (
            node("QuantileForestNode", "os.system", content=nothing, __reduce__=call),
            NEVER,
        ),
        "cached": (node("CachedNode", "builtins.str", __id__=1), NEVER),
        "unknown": (node("SomeNode", "builtins.str"), NEVER),
        "scalar": (
            node(
                "NdArrayNode", "os.system", type="json", content=[], shape=list_node(text_node(0))
            ),
            TRUSTED,
        ),
        "random state": (node("RandomStateNode", "os.system", content=text_node(1)), TRUSTED),
        "generator": (
            node(
                "RandomGeneratorNode",
                "numpy.random._generator.Generator",
                content={"bit_generator": state, "seed_seq": text_node(1)},
            ),
            CHANGED,
        ),
        "dtype": (node("DTypeNode", "os.system", content=text_node(1)), TRUSTED),
        "sparse": (
            node("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="0.npz"),
            f"{TRUSTED}scipy.sparse._csr.csr_matrix|{CHANGED}",
        ),
        "below a trusted name": (
            node("ObjectNode", "labelsure.AcceptPolicy.save"),
            TRUSTED + "labelsure.AcceptPolicy.save",
        ),
        "a submodule": (node("ObjectNode", "labelsure.study.Plan"), TRUSTED),
        "text": (node("JsonNode", "builtins.str", content=["touch"]), CHANGED),
        "half a node": ({"__loader__": "ObjectNode"}, CHANGED),
        "split name": ({**node("ObjectNode", "labelsure.x"), "__class__": "a.b"}, TRUSTED),
        "other entry": (
            node("NdArrayNode", "numpy.ndarray", type="numpy", file="labelsure.json"),
            CHANGED,
        ),
        "no entry": (node("BytesNode", "builtins.bytes", file="../../passwords.bin"), CHANGED),
        "entry that is no name": (node("BytesNode", "builtins.bytes", file=[]), CHANGED),
        "behind a number": (
            {**text_node(1), "hidden": [[{"deep": function}]]},
            NEVER,
        ),
    }


@pytest.mark.parametrize("kind", kinds_of_harm("x"))
def test_nothing_is_run(kind, tmp_path, path):
    marker = tmp_path / "marker"
    hostile, message = kinds_of_harm(marker)[kind]
    path.write_bytes(insert(tmp_path, hostile))
    before = sorted(entry.name for entry in tmp_path.iterdir())
    assert_refused(path, message)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before
    assert not marker.exists()


def test_a_module_that_is_not_trusted_is_not_imported(tmp_path, path, monkeypatch):
    marker = tmp_path / "imported"
    (tmp_path / "hostile_module.py").write_text(
        f"open({str(marker)!r}, 'w').close()\nclass A: pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    path.write_bytes(insert(tmp_path, node("ObjectNode", "hostile_module.A")))
    assert_refused(path, TRUSTED + "hostile_module.A")
    assert "hostile_module" not in sys.modules
    assert not marker.exists()
    # Whoever trusts it has it imported.
    ls.load(path, trust=["hostile_module.A"])
    assert marker.exists()
    sys.modules.pop("hostile_module")


def test_two_nodes_with_one_number(tmp_path, path):
    """Of these skops builds the first for both, so that it could stand in for another."""

    def change(schema):
        for part in sf.nodes(schema):
            if part["__loader__"] != "JsonNode":
                part["__id__"] = 1

    path.write_bytes(sf.change_json(sf.content_of("ridge", tmp_path), "schema.json", change))
    assert_refused(path, CHANGED)


def test_parts_that_lie_deep_in_each_other(tmp_path, path):
    text = '{"a":' * 20_000 + "1" + "}" * 20_000
    entries = sf.split(sf.content_of("ridge", tmp_path))
    entries["schema.json"] = entries["schema.json"][:-1] + b',"deep":' + text.encode() + b"}"
    path.write_bytes(sf.join(entries))
    assert_refused(path, "recursion")


# Files of another kind


def zipped(**entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "an empty file"),
        (b"x", "something else"),
        (b"hello\n" * 100, "something else"),
        (pickle.dumps(os.getcwd), "a pickle, which can run any code and is never opened"),
        (b'{"format": "labelsure.AcceptPolicy", "version": 1}', "something else"),
        (zipped(a=b"1"), "a zip file of something else"),
        (skops.io.dumps([1, 2]), "a zip file of something else"),
        (b"PAR1" + bytes(100), "something else"),
        (bytes(10_000), "something else"),
    ],
)
def test_files_of_another_kind(content, what, path):
    path.write_bytes(content)
    assert_refused(
        path, f"The file 'model.labelsure' must be one that `save` of labelsure wrote, got {what}"
    )


def test_a_large_file_of_another_kind_is_not_read(tmp_path):
    path = tmp_path / "large"
    with open(path, "wb") as file:
        file.truncate(2**42)
    assert_refused(path, "got something else")


# Versions


def test_a_newer_format(tmp_path, path):
    def change(header):
        header["format_version"] = 2
        header["versions"]["labelsure"] = "9.9"

    content = sf.change_json(sf.content_of("ridge", tmp_path), "labelsure.json", change)
    path.write_bytes(content)
    assert_refused(
        path,
        "must have format 1 or older, got 2. It was written by labelsure 9.9, this is "
        f"{ls.__version__}: upgrade labelsure.",
    )


def test_another_scikit_learn(tmp_path, path):
    def change_learners(schema):
        for part in sf.nodes(schema):
            attributes = (
                part["content"].get("content") if isinstance(part.get("content"), dict) else {}
            )
            if "_sklearn_version" in (attributes or {}):
                attributes["_sklearn_version"] = text_node("0.1")

    content = sf.content_of("BinaryRelevance", tmp_path)
    path.write_bytes(sf.change_json(content, "schema.json", change_learners))
    with pytest.warns(InconsistentVersionWarning, match=r"from version 0\.1"):
        loaded = ls.load(path)
    assert (loaded.predict(sf.X) == sf.fitted("BinaryRelevance").predict(sf.X)).all()


# Sizes


def test_a_file_that_grows_beyond_the_bound(tmp_path, path):
    """The bound is compared with the lengths that the file states, and no more is read."""
    entries = sf.split(sf.content_of("ridge", tmp_path))
    content = bytearray(sf.join({**entries, "bomb.npy": bytes(10**7)}, zipfile.ZIP_DEFLATED))
    at = content.rindex(b"bomb.npy") - 46  # in the directory at the end
    for size, message in ((2**32 - 1, "more than 500 times its size"), (10, CHANGED)):
        content[at + 24 : at + 28] = size.to_bytes(4, "little")
        path.write_bytes(content)
        tracemalloc.start()
        assert_refused(path, message)
        assert tracemalloc.get_traced_memory()[1] < 5 * 10**6
        tracemalloc.stop()


def test_an_array_that_states_another_length(tmp_path, path):
    entries = sf.split(sf.content_of("BinaryRelevance", tmp_path))
    name = next(name for name in entries if name.endswith(".npy"))
    for shape in ((10**15,), (10**9, 10**9), (10**3,)):
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            buffer, {"descr": "<f8", "fortran_order": False, "shape": shape}
        )
        path.write_bytes(sf.join({**entries, name: buffer.getvalue() + bytes(64)}))
        assert_refused(path, CHANGED)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([os.getcwd], dtype=object), allow_pickle=True)
    path.write_bytes(sf.join({**entries, name: buffer.getvalue()}))
    assert_refused(path, "allow_pickle=False")


def test_entries_that_are_missing(tmp_path, path):
    entries = sf.split(sf.content_of("ridge", tmp_path))
    path.write_bytes(sf.join({**entries, "schema.json": b"[]"}))
    assert_refused(path, CHANGED)
    del entries["schema.json"]
    path.write_bytes(sf.join(entries))
    assert_refused(path, "'schema.json'")


# Trees, whose indices compiled code follows without checking them


def with_trees(change, learner=None):
    """The bytes of a forest whose trees were changed after fitting."""
    model = ls.BinaryRelevance(learner or RandomForestClassifier(2, random_state=0))
    model.fit(sf.X, sf.Y)
    for forest in model.estimators_:
        for member in forest.estimators_:
            change(forest, member)
    return model


def replace_tree(member, arguments=None, **changes):
    kind, own, state = member.tree_.__reduce__()
    arguments = arguments or own
    tree = kind(*arguments)
    nodes = state["nodes"].copy()
    for name, value in changes.items():
        nodes[name][0] = value
    tree.__setstate__({**state, "nodes": nodes})
    member.tree_ = tree


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left_child": 10**6}, "a decision tree has a child beyond its nodes"),
        ({"right_child": 10**6}, "a decision tree has a child beyond its nodes"),
        ({"right_child": -5}, "a decision tree has a child beyond its nodes"),
        ({"left_child": 0}, "a decision tree has a child beyond its nodes"),  # round and round
        ({"feature": 3}, "a decision tree asks for a feature beyond those that it has"),
        ({"feature": -1}, "a decision tree asks for a feature beyond those that it has"),
    ],
)
def test_a_forged_tree_is_refused(changes, message, path):
    with_trees(lambda _, member: replace_tree(member, **changes)).save(path)
    assert_refused(path, message)


def test_trees_that_have_more_features_than_their_owner(path):
    def widen(_, member):
        _, n_classes, n_outputs = member.tree_.__reduce__()[1]
        replace_tree(member, (1000, n_classes, n_outputs), feature=999)

    def widen_members(forest, member):
        widen(forest, member)
        member.n_features_in_ = 1000

    with_trees(widen).save(path)
    assert_refused(path, "another number of features than its estimator")
    with_trees(widen_members).save(path)
    assert_refused(path, "more features than its ensemble")


def state_fewer_nodes(tree):
    tree["content"]["content"]["node_count"] = text_node(1)


def state_more_outputs(tree):
    tree["__reduce__"]["args"]["content"][2] = text_node(10**6)


def exchange_values(tree):
    tree["content"]["content"]["values"] = tree["content"]["content"]["nodes"]


@pytest.mark.parametrize("change", [state_fewer_nodes, state_more_outputs, exchange_values])
def test_a_tree_must_have_the_sizes_that_it_states(change, path):
    with_trees(lambda *_: None).save(path)

    def change_trees(schema):
        for part in sf.nodes(schema):
            if part["__loader__"] == "TreeNode":
                change(part)

    path.write_bytes(sf.change_json(path.read_bytes(), "schema.json", change_trees))
    assert_refused(path, CHANGED)


def test_a_tree_without_nodes_is_refused(path):
    with_trees(lambda *_: None).save(path)
    entries = sf.split(path.read_bytes())
    for part in sf.nodes(json.loads(entries["schema.json"])):
        if part["__loader__"] == "TreeNode":
            for name in ("nodes", "values"):
                file = part["content"]["content"][name]["file"]
                np.save(buffer := io.BytesIO(), np.load(io.BytesIO(entries[file]))[:0])
                entries[file] = buffer.getvalue()
    path.write_bytes(sf.join(entries))
    assert_refused(path, CHANGED)


def test_damage_is_found_or_does_no_harm(tmp_path, path):
    """Each entry has a checksum; what else zip notes of it is not used, or must agree."""
    content = sf.content_of("BinaryRelevance", tmp_path)
    expected = sf.fitted("BinaryRelevance").predict_proba(sf.X)
    n_refused = 0
    for at in np.random.default_rng(0).choice(len(content), size=100, replace=False):
        changed = bytearray(content)
        changed[at] ^= 0x55
        path.write_bytes(changed)
        try:
            found = ls.load(path)
        except ls.DataError:
            n_refused += 1
        else:
            np.testing.assert_array_equal(found.predict_proba(sf.X), expected)
    assert n_refused > 70
    path.write_bytes(content[: len(content) // 2])
    assert_refused(path, CHANGED)


# What a user trusts


def test_trust_is_no_prefix(tmp_path, path):
    path.write_bytes(insert(tmp_path, command(tmp_path / "marker")))
    assert_refused(path, TRUSTED + CHECK_OUTPUT, trust=["sklearn.utils", "sklearn.utils._testing"])
    assert not (tmp_path / "marker").exists()


def test_what_has_no_save_is_not_loaded(tmp_path, path):
    entries = sf.split(sf.content_of("ridge", tmp_path))
    schema = json.loads(entries["schema.json"])
    for root, what in (
        (text_node(5), "int"),
        (schema["content"]["content"]["model_"], "RidgeModel"),
    ):
        root = {**root, "protocol": 2}
        named = {part.get("file") for part in sf.nodes(root)} | {"labelsure.json"}
        kept = {name: content for name, content in entries.items() if name in named}
        path.write_bytes(sf.join({**kept, "schema.json": json.dumps(root).encode()}))
        assert_refused(path, f"it holds a {what}, which has no `save`")


def test_loading_starts_no_process(tmp_path, path):
    sf.fitted("AccuracyAwareClassifier").save(path)
    code = (
        "import sys, labelsure as ls\n"
        "import skops.io\n"
        "started = []\n"
        "sys.addaudithook(lambda event, _: started.append(event) if event in "
        "('subprocess.Popen', 'os.system', 'os.exec', 'os.fork', 'os.posix_spawn') else None)\n"
        f"ls.load({str(path)!r})\n"
        "print(started)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr
