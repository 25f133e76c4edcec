# SPDX-License-Identifier: Apache-2.0
"""Renaming of stored names, and selection of parts of a tree by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from sealpoint import _tree
from sealpoint._errors import InvalidArgumentError
from sealpoint._hints import nearest
from sealpoint._patterns import pattern, renamer
from sealpoint._tree import KIND, Node, Path, text_of


def _is_mapping(node: Node) -> bool:
    """Tells whether a node is a mapping with string keys."""
    return isinstance(node, dict) and KIND not in node and len(node) > 0


def _leaves(node: Node, path: Path = ()) -> Iterator[str]:
    if not _is_mapping(node):
        yield text_of(path)
        return
    for key, child in node.items():
        yield from _leaves(child, (*path, key))


def _check_fits(argument: str, patterns: Collection[str], names: Collection[str]) -> None:
    for item in patterns:
        compiled = pattern(item)
        if not any(compiled.fullmatch(name) for name in names):
            near = nearest(item, names)
            hint = "" if near is None else f"; the nearest is {near}"
            raise InvalidArgumentError(f"{argument}: {item!r} matches no stored name{hint}")


class Renaming:
    """Rules from patterns of stored names to names in the state.

    ``*`` matches any characters. The new name keeps these characters.

    Raises InvalidArgumentError if a pattern matches no stored name, or if two names become the same.
    """

    def __init__(self, rules: Mapping[str, str], tree: Node) -> None:
        self.name: Callable[[str], str] = renamer(rules.items())
        _check_fits("rename", rules, list(_leaves(tree)))
        moved: dict[str, Node] = {}
        self.tree = self._without_moved(tree, (), moved)
        for name, node in moved.items():
            _insert(self.tree, name, node)

    def keys(self, values: Mapping[str, Node]) -> dict[str, Node]:
        """Renames the keys of a mapping whose keys are paths of values."""
        return {self.name(name): node for name, node in values.items()}

    def prefixes(self, values: Mapping[str, Node]) -> dict[str, Node]:
        """Renames the keys of a mapping whose keys are paths of mappings."""
        return {self.name(f"{name}.").removesuffix("."): node for name, node in values.items()}

    def _without_moved(self, node: Node, path: Path, moved: dict[str, Node]) -> Node:
        if not _is_mapping(node):
            return node
        kept = {}
        for key, child in node.items():
            name = text_of((*path, key))
            new = name if _is_mapping(child) else self.name(name)
            if new == name:
                kept[key] = self._without_moved(child, (*path, key), moved)
            elif new in moved:
                raise InvalidArgumentError(f"rename: two stored names become {new!r}; one is {name!r}")
            else:
                moved[new] = child
        return kept


def _insert(tree: Node, name: str, node: Node) -> None:
    """Inserts a node below the existing mapping with the longest matching path."""
    parts = name.split(".")
    count = len(parts) - 1
    while count > 0:
        inner = tree.get(".".join(parts[:count]))
        if isinstance(inner, dict) and KIND not in inner:
            tree, parts = inner, parts[count:]
            count = len(parts)
        count -= 1
    rest = ".".join(parts)
    if rest in tree:
        raise InvalidArgumentError(f"rename: {name!r} is a stored name already")
    tree[rest] = node


def part_of(tree: Node, keys: Sequence[str]) -> Node:
    """Returns the nodes that match the patterns, with their enclosing mappings. Matching a mapping selects its whole content.

    Raises InvalidArgumentError if a pattern matches nothing.
    """
    names = set(_leaves(tree))
    above = {name[:at] for name in names for at, letter in enumerate(name) if letter == "."}
    _check_fits("keys", keys, names | above)
    compiled = [pattern(key) for key in keys]
    return _selected(tree, (), compiled)


def _selected(node: Node, path: Path, patterns: Sequence[re.Pattern[str]]) -> Node:
    found = {}
    for key, child in node.items():
        name = text_of((*path, key))
        if any(one_pattern.fullmatch(name) for one_pattern in patterns):
            found[key] = child
        elif _is_mapping(child) and (inner := _selected(child, (*path, key), patterns)):
            found[key] = inner
    return found
