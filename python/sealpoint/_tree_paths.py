# SPDX-License-Identifier: Apache-2.0
"""Conversion between trees of states (spec/tree.md) and leaves by path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sealpoint import _tree
from sealpoint._errors import InvalidArgumentError
from sealpoint._tree import KIND, Node, Path, text_of


class _Branch(dict[str | int, Any]):
    """A container that may become a list or a mapping."""


def nest(leaves: Iterable[tuple[Path, Node]]) -> Node:
    """Builds a tree from leaves. In a leaf's path, numbers are list positions and strings are mapping keys."""
    root = _Branch()
    for path, node in leaves:
        branch = root
        for part in path[:-1]:
            branch = branch.setdefault(part, _Branch())
            if not isinstance(branch, _Branch):
                raise InvalidArgumentError("path has both a value and children", object=text_of(path))
        if path[-1] in branch:
            raise InvalidArgumentError("duplicate path in the state", object=text_of(path))
        branch[path[-1]] = node
    return _node_of(root, is_root=True)


def _node_of(branch: Any, is_root: bool = False) -> Node:
    if not isinstance(branch, _Branch):
        return branch
    if not is_root and all(type(key) is int for key in branch) and sorted(branch) == list(range(len(branch))):
        return [_node_of(branch[i]) for i in range(len(branch))]
    if all(type(key) is str for key in branch) and KIND not in branch:
        return {str(key): _node_of(value) for key, value in branch.items()}
    return {KIND: "dict", "items": [[key, _node_of(value)] for key, value in branch.items()]}


def kind_of(node: Node) -> str | None:
    return node.get(KIND) if isinstance(node, dict) else None


def entries_of(node: Node) -> dict[Any, Node] | None:
    """Returns the values of a mapping by key, or None if the node is not a mapping."""
    if not isinstance(node, dict):
        return None
    if KIND not in node:
        return node
    if node[KIND] == "dict":
        keys = _tree.Decoder(lambda name: name)
        return {keys.decode(key): value for key, value in node["items"]}
    return None


def find(entries: Mapping[Any, Node], name: str) -> Node | None:
    """Finds a dotted name in nested mappings. Each key may stand for one or several parts of the name. Returns None if not found.

    The name "a" finds {"b": …} in {"a.b": …}; the name "a.b" finds the inner value in {"a": {"b": …}}.
    """
    inner = {key[len(name) + 1 :]: node for key, node in entries.items() if isinstance(key, str) and key.startswith(f"{name}.")}
    if inner:
        return inner if KIND not in inner else None
    for at, letter in enumerate(name):
        below = entries_of(entries.get(name[:at])) if letter == "." else None
        if below is not None:
            rest = name[at + 1 :]
            return below[rest] if rest in below else find(below, rest)
    return None


def flatten(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Returns (path, leaf) pairs as in DCP: all keys are strings, and a list that contains only plain values is one leaf."""
    entries = entries_of(node)
    if entries is not None:
        for key, value in entries.items():
            yield from flatten(value, (*path, str(key)))
    elif isinstance(node, list) and _is_walked(node):
        for i, value in enumerate(node):
            yield from flatten(value, (*path, i))
    else:
        yield path, node


def _is_walked(node: list[Node]) -> bool:
    return any(
        entries_of(child) is not None or kind_of(child) in ("tensor", "per_rank") or (isinstance(child, list) and _is_walked(child))
        for child in node
    )
