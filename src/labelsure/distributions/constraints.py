"""`LabelConstraints`: rules among labels by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.notebook import count
from labelsure._runtime.typing import LabelNames, LabelsetsLike, Names
from labelsure.distributions._base import LabelsetDistribution, check_distribution
from labelsure.distributions._constrained import constrain
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.foreign import as_table
from labelsure.labelsets.label_rules import Group, LabelRules
from labelsure.labelsets.names import NamedLabelsets, list_some, read_labelsets
from labelsure.labelsets.sparse import is_sparse

if TYPE_CHECKING:
    import pandas as pd


class LabelConstraints:
    """Rules among labels: implied parents and groups of labels that exclude each other.

    Labels that no rule names are free.

    Parameters
    ----------
    parents
        What each label implies directly: a dict from a label to its parent or to several, a
        DataFrame or the path of a CSV file with the columns "child" and "parent" (of other names:
        the first two), or a graph whose `edges` go from parent to child, as of networkx. Parents
        that are not among a model's labels are skipped: a label then implies the next ancestors
        that are. So are children, unless a dict names them.
    exclusive
        Groups of labels of which at most one is true.
    exactly_one
        Groups of labels of which exactly one is true; of labels with common parents, exactly one
        wherever these are true.

    See Also
    --------
    ConstrainedCalibration : Calibrates probabilities through the rules.
    AccuracyAwareClassifier : Takes them as `constraints`.

    Notes
    -----
    Distributions over valid labelsets are exact: a list of all valid labelsets where there are at
    most 4,096, otherwise a trellis, for any number of labels. Where a label has several parents,
    `docs/howto/taxonomies.md` says what is assumed.

    Examples
    --------
    >>> from labelsure import IndependentLabels, LabelConstraints
    >>> rules = LabelConstraints(parents={"poodle": "dog"}, exclusive=[["dog", "cat"]])
    >>> rules.close([["poodle"], ["cat"]], ["cat", "dog", "poodle"]).to_frame()
              labels
    0  (dog, poodle)
    1         (cat,)
    >>> rules.check([["poodle"], ["cat", "dog"]], ["cat", "dog", "poodle"])
       row                                   rule
    0    0                   'poodle' needs 'dog'
    1    1  at most one of 'dog', 'cat' is true
    >>> dist = IndependentLabels([[0.4, 0.5, 0.6]], ["cat", "dog", "poodle"])
    >>> rules.apply(dist).marginals().round(3)
    array([[0.16, 0.6 , 0.36]])
    """

    def __init__(
        self,
        parents: Any = None,
        exclusive: Iterable[Iterable[Any]] = (),
        exactly_one: Iterable[Iterable[Any]] = (),
    ) -> None:
        self.parents = _read_parents(parents)
        self.is_whole = not isinstance(parents, Mapping)
        self.exclusive = _read_groups(exclusive, "exclusive")
        self.exactly_one = _read_groups(exactly_one, "exactly_one")

    def __repr__(self) -> str:
        return f"LabelConstraints({self.words})"

    @property
    def words(self) -> str:
        """Number of rules of each form."""
        sizes = {
            "parent": sum(map(len, self.parents.values())),
            "exclusive group": len(self.exclusive),
            "exactly-one group": len(self.exactly_one),
        }
        return ", ".join(count(number, name) for name, number in sizes.items() if number) or "none"

    def bind(self, label_names: LabelNames, n_labels: int = 0) -> LabelRules:
        """Rules among given labels, by position.

        Parameters
        ----------
        label_names
            The labels in the order of the columns; None where rules name positions.
        n_labels
            The number of labels, where they have no names.
        """
        return _bind(self, label_names, n_labels if label_names is None else len(label_names))

    def check(self, Y: LabelsetsLike, label_names: Names = None) -> pd.DataFrame:
        """Rules that labelsets break, a row for each rule and labelset.

        Parameters
        ----------
        Y
            Labelsets in any form that `read_labelsets` takes.
        label_names
            Their labels, where Y does not name them.

        Returns
        -------
        pandas.DataFrame
            `row`, the index of the labelset, and `rule`, the broken rule in words.
        """
        import pandas as pd

        named, rules = self._read(Y, label_names)
        index = pd.RangeIndex(len(named)) if named.index is None else named.index
        pairs = [
            (place, rule)
            for rule, broken in rules.breaches(named.labelsets)
            for place in np.flatnonzero(broken).tolist()
        ]
        pairs.sort(key=lambda pair: pair[0])
        return pd.DataFrame(
            {"row": index[[place for place, _ in pairs]], "rule": [rule for _, rule in pairs]}
        )

    def close(self, Y: LabelsetsLike, label_names: Names = None) -> NamedLabelsets:
        """Labelsets with all ancestors of their labels.

        Labels that exclude each other stay as they are; `check` finds them.

        Parameters
        ----------
        Y
            Labelsets in any form that `read_labelsets` takes, also sparse.
        label_names
            Their labels, where Y does not name them.
        """
        named, rules = self._read(Y, label_names)
        return NamedLabelsets(rules.close(named.labelsets), named.label_names, named.index)

    def apply(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        """Distributions over valid labelsets alone.

        Independent labels become independent given that the labelset is valid. Chains obey the
        rules link by link. Joint probabilities and tables keep their valid labelsets, normalised; a
        row that has none is predicted from its marginals. Votes get the ancestors of their labels.

        Parameters
        ----------
        dist
            n distributions; `as_distribution` makes them of probabilities.
        """
        check_distribution(dist)
        return constrain(dist, self.bind(dist.label_names, dist.n_labels))

    def _read(self, Y: LabelsetsLike, label_names: Names) -> tuple[NamedLabelsets, LabelRules]:
        named = read_labelsets(Y, label_names, sparse=is_sparse(getattr(Y, "labelsets", Y)))
        return named, self.bind(named.label_names, named.n_labels)


@lru_cache(maxsize=16)
def _bind(constraints: LabelConstraints, label_names: LabelNames, n_labels: int) -> LabelRules:
    names = tuple(map(str, range(n_labels))) if label_names is None else label_names
    position = {name: j for j, name in enumerate(names)}
    parents, all_parents = constraints.parents, set().union(*constraints.parents.values())
    for child in () if constraints.is_whole else parents:
        if child not in position and child not in all_parents:
            raise unknown_name("label in `parents`:", child, position)
    nearest = [[position[above] for above in _nearest(parents, name, position)] for name in names]
    if parents and not any(nearest):
        raise InputError(
            f"`parents` must relate some of the labels {list_some(names)}, got the children "
            f"{list_some(list(parents))} and the parents {list_some(sorted(all_parents))}."
        )
    groups = []
    for which in ("exclusive", "exactly_one"):
        for members in getattr(constraints, which):
            for name in members:
                if name not in position:
                    raise unknown_name(f"label in `{which}`:", name, position)
            places = tuple(position[name] for name in members)
            groups.append(Group(places, which == "exactly_one"))
    rules = LabelRules.reduced(nearest, groups, label_names)
    never = np.flatnonzero((rules.excluded & (rules.implied.toarray() > 0)).any(axis=1))
    if never.size:
        raise InputError(
            f"Each label must be possible, got rules by which {names[never[0]]!r} never is: it "
            "implies labels that exclude each other."
        )
    return rules


def _nearest(
    parents: Mapping[str, Iterable[str]], name: str, position: Mapping[str, int]
) -> set[str]:
    """Nearest ancestors of a label that are labels themselves."""
    nearest, waiting = set(), list(parents.get(name, ()))
    while waiting:
        above = waiting.pop()
        if above in position:
            nearest.add(above)
        else:
            waiting.extend(parents.get(above, ()))
    return nearest


def _read_parents(parents: object) -> dict[str, tuple[str, ...]]:
    """Parents of each child by name. Raises InputError for a cycle."""
    by_child: dict[str, dict[str, None]] = {}
    for child, parent in () if parents is None else _read_pairs(parents):
        for which, name in (("child", child), ("parent", parent)):
            if not isinstance(name, (str, int, np.integer)) or isinstance(name, bool) or name == "":
                raise InputError(
                    f"`parents` must name a {which} in each row, got {name!r}. Write names as "
                    "text or whole numbers, and leave out rows of labels without parents."
                )
        by_child.setdefault(str(child), {})[str(parent)] = None
    try:
        TopologicalSorter(by_child).prepare()
    except CycleError as error:
        raise InputError(
            f"`parents` must have no cycle, got {' -> '.join(map(repr, error.args[1]))}. Remove "
            "one of these parents."
        ) from error
    return {child: tuple(names) for child, names in by_child.items()}


def _read_pairs(parents: Any) -> Iterable[tuple[Any, Any]]:
    """Pairs of child and parent, from a dict, a graph, a table or its file."""
    if isinstance(parents, Mapping):
        lists = ((c, names if _is_list(names) else [names]) for c, names in parents.items())
        return [(child, parent) for child, names in lists for parent in names]
    if hasattr(parents, "edges"):
        if not getattr(parents, "is_directed", lambda: True)():
            raise InputError("`parents` must be a directed graph, from parent to child.")
        edges = parents.edges() if callable(parents.edges) else parents.edges
        return [(edge[1], edge[0]) for edge in edges]
    if isinstance(parents, (str, os.PathLike)):
        import pandas as pd

        try:
            options: Any = {"dtype": str, "keep_default_na": False, "skipinitialspace": True}
            parents = pd.read_csv(parents, **options)
        except (OSError, UnicodeError, ValueError) as error:
            raise InputError(
                f"`parents` must be a CSV file with the columns child and parent: {error}."
            ) from error
    parents = as_table(parents)
    columns = getattr(parents, "columns", ())
    if len(columns) < 2:
        raise InputError(
            "`parents` must be a dict, a table with the columns child and parent, its file, or a "
            f"graph with `edges`, got {type(parents).__name__}."
        )
    named = ["child", "parent"] if {"child", "parent"} <= set(columns) else list(columns[:2])
    return parents[named].itertuples(index=False, name=None)


def _read_groups(groups: Iterable[Iterable[Any]], which: str) -> tuple[tuple[str, ...], ...]:
    if not _is_list(groups):
        raise InputError(f"`{which}` must be a list of groups of labels, got {groups!r}.")
    read = []
    for group in groups:
        members = tuple(str(name) for name in group) if _is_list(group) else ()
        if len(members) < 2 or len(set(members)) < len(members):
            raise InputError(
                f"`{which}` must be a list of groups of two or more distinct labels, got {group!r}."
            )
        read.append(members)
    return tuple(read)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)
