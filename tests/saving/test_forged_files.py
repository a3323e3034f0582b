"""Files whose types are all trusted and whose values are forged: refused, in little memory."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import saved_files as sf
import scipy.sparse as sp
import skops.io  # registers all nodes
from saved_files import dict_node, list_node, node, text_node
from skops.io._audit import NODE_TYPE_MAPPING

import labelsure as ls
from labelsure.saving import OWN_TYPES
from labelsure.saving._schema import NODE_CHECKS, SPARSE_TYPES, TRUSTED_LOADERS

CHANGED = "is damaged or changed: "
NEVER_LOADED = {
    "CachedNode",
    "FunctionNode",
    "MethodNode",
    "OperatorFuncNode",
    "PartialNode",
    "QuantileForestNode",
}
PAGE = Path(__file__).parents[2] / "docs" / "dev" / "saved_files.md"


def insert(extra, entries=(), compression=zipfile.ZIP_DEFLATED):
    """The bytes of a valid model with one more attribute, and more entries."""
    model = ls.BinaryRelevance(random_state=0).fit(sf.X, sf.Y)
    kept = sf.split(_saved(model))
    schema = json.loads(kept["schema.json"])
    attributes = schema["content"]
    attributes["content"] = {"extra": extra, **attributes["content"]}
    attributes["key_types"]["content"].insert(0, node("TypeNode", "builtins.str"))
    kept["schema.json"] = json.dumps(schema).encode()
    return sf.join({**kept, **dict(entries)}, compression)


def _saved(model):
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "m")
        return (Path(folder) / "m").read_bytes()


def array_entry(values):
    np.save(buffer := io.BytesIO(), values, allow_pickle=False)
    return buffer.getvalue()


def array_node(file="x.npy", name="numpy.ndarray", **more):
    return node("NdArrayNode", name, type="numpy", file=file, **more)


def npz(compress=True, **arrays):
    buffer = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def sparse_node(name="scipy.sparse._csr.csr_matrix"):
    return node("SparseMatrixNode", name, type="scipy", file="x.npz")


def csr_arrays(indices, indptr=(0, 1, 2), shape=(2, 3), **changes):
    parts = {
        "format": np.array(b"csr"),
        "indices": np.array(indices, dtype=np.int32),
        "indptr": np.array(indptr, dtype=np.int32),
        "shape": np.array(shape),
        "data": np.ones(len(indices)),
    }
    return {**parts, **changes}


def object_array(items, *shape):
    states = list_node(*map(text_node, shape), loader="TupleNode", name="builtins.tuple")
    return node("NdArrayNode", "numpy.ndarray", type="json", content=items, shape=states)


def generator_node(pool_size):
    seed = dict_node({"entropy": text_node(1), "pool_size": text_node(pool_size)})
    state = np.random.default_rng(0).bit_generator.state
    inner = dict_node({name: text_node(value) for name, value in state.pop("state").items()})
    bits = dict_node({**{name: text_node(value) for name, value in state.items()}, "state": inner})
    content = {"bit_generator": bits, "seed_seq": seed}
    return node("RandomGeneratorNode", "numpy.random._generator.Generator", content=content)


def random_state_node(position):
    state = np.random.RandomState(0).get_state(legacy=False)
    words = {"key": array_node(), "pos": text_node(position)}
    content = dict_node(
        {
            "bit_generator": text_node("MT19937"),
            "state": dict_node(words),
            "has_gauss": text_node(0),
            "gauss": text_node(0.0),
        }
    )
    made = node("RandomStateNode", "numpy.random.mtrand.RandomState", content=content)
    return made, {"x.npy": array_entry(state["state"]["key"])}


def tree_node(n_outputs):
    parts = (text_node(3), array_node(), text_node(n_outputs))
    arguments = list_node(*parts, loader="TupleNode", name="builtins.tuple")
    content = dict_node({})
    return node(
        "TreeNode", "sklearn.tree._tree.Tree", content=content, __reduce__={"args": arguments}
    )


def list_node_of(number, *parts):
    return {**list_node(*parts), "__id__": number}


def nested_twice(depth):
    found = list_node_of(10**6)
    for level in range(1, depth):
        found = list_node_of(10**6 + level, found, list_node_of(10**6 + level - 1))
    return found


VALUE = array_entry(np.ones(3))
ONE = {"x.npy": array_entry(np.array([2]))}

FORGED = {
    "BytearrayNode": (
        node("BytearrayNode", "builtins.bytearray", file="x"),
        {"x": bytes(10**7)},
        "500 times",
    ),
    "BytesNode": (node("BytesNode", "builtins.bytes", file="x"), {"x": bytes(10**8)}, "500 times"),
    "ConstructorFromReduceNode": (
        node("ConstructorFromReduceNode", "numpy.dtype", content=list_node(text_node("O"))),
        {},
        "must name trusted types only, got numpy.dtype",
    ),
    "DTypeNode": (
        node("DTypeNode", "numpy.ndarray", content=array_node()),
        {"x.npy": VALUE},
        "must name trusted types only, got numpy.ndarray",
    ),
    "DefaultDictNode": (
        node(
            "DefaultDictNode",
            next(iter(OWN_TYPES)),
            content={"main": dict_node({}), "default_factory": text_node(None)},
        ),
        {},
        "must name trusted types only",
    ),
    "DictNode": (
        {**dict_node({}), "__module__": "scipy.sparse._csr", "__class__": "csr_matrix"},
        {},
        "must name trusted types only, got scipy.sparse._csr.csr_matrix",
    ),
    "JsonNode": (text_node([[]] * 10**6), {}, "500 times"),
    "JSON in JSON": (text_node(json.dumps([[]] * 10**6)), {}, "500 times"),
    "JSON that is none": ({**text_node(1), "content": "["}, {}, CHANGED),
    "ListNode": (nested_twice(45), {}, "two parts have the number"),
    "LossNode": (
        node(
            "LossNode",
            "numpy.dtype",
            content=dict_node({}),
            __reduce__={"args": list_node(text_node("O"))},
        ),
        {},
        "must name trusted types only, got numpy.dtype",
    ),
    "MaskedArrayNode": (
        node(
            "MaskedArrayNode",
            "numpy.ma.MaskedArray",
            content={"data": list_node(text_node("x" * 999), text_node("")), "mask": array_node()},
        ),
        {"x.npy": VALUE},
        "a masked array consists of something else",
    ),
    "NdArrayNode": (array_node(), {"x.npy": VALUE[:-8]}, "the length that it states"),
    "an array that is longer": (array_node(), {"x.npy": VALUE + bytes(8)}, "length that it states"),
    "values without a size": (
        array_node(),
        {"x.npy": array_entry(np.zeros(3, "V0")).replace(b"(3,)", b"(9,)")},
        "values without a size",
    ),
    "a scalar of an array": (array_node(name="numpy.clongdouble"), {"x.npy": VALUE}, "one value"),
    "a scalar of another type": (
        array_node(name="numpy.void"),
        {"x.npy": array_entry(np.array(10**9))},
        "a numpy.void is not one value of that type",
    ),
    "arrays in an array": (
        object_array([list_node(array_node())], 1, 1),
        {"x.npy": VALUE},
        "an array of objects holds more than",
    ),
    "lists in an array": (
        object_array([list_node(text_node([1, 2]))], 1, 1),
        {},
        "an array of objects holds more than",
    ),
    "an array of another shape": (object_array([text_node(1)], 1, 1), {}, "shape that it states"),
    "ObjectNode": (
        node("ObjectNode", "sklearn.utils._bunch.Bunch", content=dict_node({})),
        {},
        "must name trusted types only, got sklearn.utils._bunch.Bunch",
    ),
    "RandomGeneratorNode": (generator_node(10**9), {}, "a seed sequence has a pool of 1000000000"),
    "RandomStateNode": (*random_state_node(10**8), "a position beyond its words"),
    "a negative position": (*random_state_node(-1), "a position beyond its words"),
    "SetNode": (
        list_node(text_node([1]), loader="SetNode", name="builtins.set"),
        {},
        "unhashable",
    ),
    "SliceNode": (
        node("SliceNode", "builtins.slice", content={"start": [[]] * 10**6, "stop": 1, "step": 1}),
        {},
        "500 times",
    ),
    "SparseMatrixNode": (
        sparse_node("scipy.sparse._matrix.spmatrix"),
        {"x.npz": npz(**csr_arrays([0, 2**30]))},
        "csr_matrix is called scipy.sparse._matrix.spmatrix|indices",
    ),
    "its base class": (
        sparse_node("scipy.sparse._base.sparray"),
        {"x.npz": npz(**csr_arrays([0, 1]))},
        "a csr_matrix is called scipy.sparse._base.sparray",
    ),
    "an array instead of a matrix": (
        sparse_node("scipy.sparse._csr.csr_array"),
        {"x.npz": npz(**csr_arrays([0, 1]))},
        "a csr_matrix is called scipy.sparse._csr.csr_array",
    ),
    "an index far beyond": (
        sparse_node(),
        {"x.npz": npz(**csr_arrays([0, 2**30]))},
        "(?i)ind(ices|ex)",
    ),
    "an index just beyond": (sparse_node(), {"x.npz": npz(**csr_arrays([0, 3]))}, "(?i)ind"),
    "a negative index": (sparse_node(), {"x.npz": npz(**csr_arrays([0, -1]))}, "(?i)ind"),
    "pointers that fall": (
        sparse_node(),
        {"x.npz": npz(**csr_arrays([0, 1], (0, 9, 2)))},
        "(?i)ind",
    ),
    "a column of coo beyond": (
        sparse_node("scipy.sparse._coo.coo_matrix"),
        {
            "x.npz": npz(
                format=np.array(b"coo"),
                row=np.array([0, 9]),
                col=np.array([0, 1]),
                shape=np.array([2, 3]),
                data=np.ones(2),
            )
        },
        "(?i)ind",
    ),
    "npz that was deflated": (
        sparse_node(),
        {"x.npz": npz(**csr_arrays([0, 1], data=np.zeros(10**7)))},
        "500 times",
    ),
    "TreeNode": (tree_node(10**6), ONE, "index 1 is out of bounds"),
    "TupleNode": (
        list_node(text_node(1), loader="TupleNode", name="sklearn.tree._tree.Tree"),
        {},
        "must name trusted types only, got sklearn.tree._tree.Tree",
    ),
    "TypeNode": (
        node("TypeNode", "labelsure.guarantees._policy.AcceptPolicy"),
        {},
        "must name trusted types only, got labelsure.guarantees._policy.AcceptPolicy",
    ),
    "one entry of many parts": (
        list_node(*({**array_node("a"), "__id__": 10**6 + i} for i in range(40))),
        {"a": array_entry(np.zeros(10**4))},
        "two parts have the entry 'a'",
    ),
    "parts without a number": (
        list_node(array_node("a"), array_node("a")),
        {"a": VALUE},
        "two parts have the entry 'a'",
    ),
    "an entry of no part": (text_node(1), {"a": bytes(10)}, "no part has the entry 'a'"),
    "a large entry of no part": (text_node(1), {"a": bytes(10**8)}, "500 times"),
    "very many parts": (list_node(*([list_node()] * 10**5)), {}, "500 times"),
    "a part that holds itself": (
        list_node_of(10**6, list_node_of(10**6)),
        {},
        "two parts have the number 1000000",
    ),
    "a number that is none": ({**text_node(1), "__id__": 1.5}, {}, "two parts have the number 1.5"),
    "not a number": ({**text_node(1), "extra": float("nan")}, {}, "NaN is not a number"),
}


def test_every_node_of_skops_is_loaded_and_checked_or_never_loaded():
    assert skops.io.loads
    known = {name for name, _ in NODE_TYPE_MAPPING}
    assert known | {"QuantileForestNode"} == NODE_CHECKS.keys() | NEVER_LOADED
    assert not NODE_CHECKS.keys() & NEVER_LOADED
    assert NODE_CHECKS.keys() <= FORGED.keys()
    assert set(TRUSTED_LOADERS.values()) <= NODE_CHECKS.keys()
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    written = {name for line in lines for name in line.split("`")[1::2] if name.endswith("Node")}
    assert written == NODE_CHECKS.keys()


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_node_is_refused(kind, tmp_path):
    extra, entries, message = FORGED[kind]
    path = tmp_path / "model.labelsure"
    path.write_bytes(insert(extra, entries))
    with pytest.raises(ls.DataError, match=message) as caught:
        ls.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("extra", "entries"),
    [
        (object_array([list_node(text_node("a")), list_node(text_node(2))], 2, 1), {}),
        (array_node(name="numpy.float64"), {"x.npy": array_entry(np.float64(2))}),
        (array_node(name="numpy.str_"), {"x.npy": array_entry(np.str_("text"))}),
        (generator_node(4), {}),
        random_state_node(624),
        (sparse_node(), {"x.npz": npz(**csr_arrays([0, 2]))}),
        (list_node_of(10**6, list_node_of(10**6 + 1), list_node_of(10**6 + 1)), {}),
        (tree_node(1), ONE),
    ],
)
def test_what_is_forged_is_all_that_is_wrong(extra, entries, tmp_path):
    path = tmp_path / "model.labelsure"
    path.write_bytes(insert(extra, entries))
    assert hasattr(ls.load(path), "extra")


def test_two_entries_of_one_name(tmp_path):
    entries = [*sf.split(insert(text_node(1))).items(), ("schema.json", b"{}")]
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = sf.join(entries)
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ls.DataError, match="two entries have the same name"):
        ls.load(tmp_path / "m")


@pytest.mark.parametrize("version", [float("nan"), "1", None, True, 0, 1.0])
def test_a_format_version_that_is_none(version, tmp_path):
    content = sf.content_of("ridge", tmp_path)
    content = sf.change_json(content, "labelsure.json", lambda h: {**h, "format_version": version})
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ls.DataError, match=r"NaN is not a number|its format_version is"):
        ls.load(tmp_path / "m")


# Memory

MEASURE = """
import json, resource, sys
import labelsure as ls
import skops.io, sklearn.ensemble, sklearn.neighbors, sklearn.svm, scipy.sparse
from labelsure.saving import read_description

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

for path in sys.argv[1:]:
    for read in (ls.load, read_description):
        limit = status("VmSize") + 2**28
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = status("VmRSS")
        try:
            read(path)
            error = ""
        except ls.LabelsureError as raised:
            error = str(raised)
        print(json.dumps([path, read.__name__, status("VmHWM") - before, error]))
"""


def measure_peaks(paths):
    """Bytes that `load` and `info` take at their peak, each under a limit of 256 MB more."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")
def test_memory_of_reading_is_bounded_by_the_size_of_the_file(tmp_path):
    """Saved models of every kind, and forged ones: 750 times their size, and 8 MB."""
    paths = {}
    for number, kind in enumerate(sf.MAKERS):
        paths[kind] = tmp_path / f"saved-{number}"
        sf.fitted(kind).save(paths[kind])
    for number, (kind, (extra, entries, _)) in enumerate(FORGED.items()):
        paths[kind] = tmp_path / f"forged-{number}"
        paths[kind].write_bytes(insert(extra, entries))
    peaks = measure_peaks(paths.values())
    assert len(peaks) == 2 * len(paths)
    for path, read, peak, error in peaks:
        kind = next(kind for kind, place in paths.items() if str(place) == path)
        size = paths[kind].stat().st_size
        assert peak < 8 * 2**20 + 750 * size, (kind, read, peak, size)
        assert bool(error) == (kind in FORGED and read == "load") or read != "load", (kind, error)


def test_sparse_types_are_those_of_scipy():
    kinds = [
        getattr(sp, f"{k}_{c}")
        for k in ("bsr", "coo", "csc", "csr", "dia")
        for c in ("array", "matrix")
    ]
    assert {f"{kind.__module__}.{kind.__name__}" for kind in kinds} == SPARSE_TYPES
