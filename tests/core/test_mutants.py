"""The tool behind `make mutants`: what it changes, and that its tables fit the package."""

import ast
import tomllib

import mutants
import pytest


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("a + b", {"a + b -> a - b"}),
        ("a - b", {"a - b -> a + b"}),
        ("a < b", {"a < b -> a <= b"}),
        ("a == b", {"a == b -> a != b"}),
        ("a and b", {"a and b -> a or b"}),
        ("not a", {"not a -> a"}),
        ("-a", {"-a -> a"}),
        ("f(2)", {"f(2) -> f(3)"}),
        ("f(x=True)", {"x=True -> x=False"}),
        ("a += 0.5", {"a += 0.5 -> a -= 0.5", "a += 0.5 -> a += 1.5"}),
        ("f('text', None)", set()),
        ("zip(a, b, strict=True)", set()),
        ("def f(a: int | None) -> int | str: ...", set()),
    ],
)
def test_one_operator_or_constant_is_changed(code, changes):
    assert {change for _, _, change in mutants.mutate(ast.parse(code))} == changes


def test_a_change_is_made_in_one_place_and_known_by_its_function():
    code = "class A:\n    def f(self):\n        return 1 + 2\n\ndef g():\n    return 1 + 2\n"
    tree = ast.parse(code)
    places = [(place, function) for place, function, _ in mutants.mutate(tree)]
    assert [function for _, function in places] == ["A.f"] * 3 + ["g"] * 3
    assert ast.unparse(tree) == ast.unparse(ast.parse(code))  # looking changes nothing
    ((_, _, change),) = mutants.mutate(tree, places[3][0])
    assert change == "1 + 2 -> 1 - 2"
    assert ast.unparse(tree) == ast.unparse(ast.parse("1 - 2".join(code.rsplit("1 + 2", 1))))


def test_every_module_has_tests_and_every_entry_is_used():
    modules = {mutant.module for mutant in mutants.all_mutants([])}
    assert "paper/_claims.py" in modules
    assert not any(module.startswith("_kernels/") for module in modules)
    used = {path for module in modules for path in mutants.tests_of(module)}
    table = tomllib.loads((mutants.ROOT / "tests/mutants.toml").read_text())["tests"]
    for name, paths in table.items():
        assert any(module.startswith(name) for module in modules), name
        for path in paths:
            assert (mutants.ROOT / "tests" / path).is_file()
    assert used


def test_equivalent_changes_are_changes_that_exist_and_have_a_reason():
    entries = mutants.read_equivalent()
    known = {mutant.key for mutant in mutants.all_mutants([entry["module"] for entry in entries])}
    for entry in entries:
        assert (entry["module"], entry["function"], entry["change"]) in known, entry
        assert len(entry["reason"]) > 20
    assert len({tuple(entry.values()) for entry in entries}) == len(entries)
