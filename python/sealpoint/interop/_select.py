# SPDX-License-Identifier: Apache-2.0
"""Selection and renaming of items of a state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sealpoint import _tree
from sealpoint._errors import InvalidArgumentError, NotFoundError, UnsupportedError
from sealpoint._patterns import pattern
from sealpoint._tree import KIND, Node, Path, text_of
from sealpoint._tree_paths import entries_of, kind_of
from sealpoint.interop._source import State, Tensor

# Usual names of optimizer state.
OPTIMIZER = (
    "optimizer",
    "optimizer.*",
    "optimizers",
    "optimizers.*",
    "optim",
    "optim.*",
    "optimizer_state*",
    "opt",
    "opt.*",
    "*.exp_avg",
    "*.exp_avg_sq",
    "lr_scheduler",
    "lr_scheduler.*",
    "opt_param_scheduler",
    "opt_param_scheduler.*",
)


def select(state: State, match: Sequence[str], drop: Sequence[str], tensors_only: bool, dropped: list[str]) -> State:
    """Returns a state with the selected leaves and objects. ``dropped`` receives the names of all other leaves and objects.

    Args:
        match: Patterns of whole names. Default: all.
        drop: Patterns of names to leave out; "optimizer" stands for the patterns in OPTIMIZER.
        tensors_only: Leave out values and objects.

    Raises NotFoundError if a pattern matches nothing.
    """
    unused = {*match, *drop}
    chosen = [(text, pattern(text)) for text in match]
    refused = [(text, pattern(item)) for text in drop for item in (OPTIMIZER if text == "optimizer" else (text,))]

    def is_kept(name: str, is_tensor: bool) -> bool:
        fits = [text for text, fit in chosen if fit.fullmatch(name)]
        misfits = [text for text, fit in refused if fit.fullmatch(name)]
        unused.difference_update(fits, misfits)
        return (not match or bool(fits)) and not misfits and (is_tensor or not tensors_only)

    tree = _pruned(state.tree, (), is_kept, dropped) or {}
    objects = {}
    for name, value in state.objects.items():
        if is_kept(name, False):
            objects[name] = value
        else:
            dropped.append(name)
    left_out = []
    for entry in state.left_out:
        if entry.may_hold_state and not is_kept(entry.name, True):
            dropped.append(entry.name)
        else:
            left_out.append(entry)
    unused.discard("optimizer")
    if unused:
        raise NotFoundError(f"{min(unused)!r} matches no name", path=state.path)
    return dataclasses.replace(with_tree(state, tree, state.tensors, objects), left_out=left_out)


def without(state: State, names: Container[str]) -> State:
    """Returns a state without the leaves that have these names."""
    tree = _pruned(state.tree, (), lambda name, _: name not in names, []) or {}
    return with_tree(state, tree, state.tensors, state.objects)


def with_tree(state: State, tree: Any, tensors: Mapping[str, Tensor], objects: dict[str, tuple[str, bytes]]) -> State:
    own = {text_of(path) for path, node in leaves(tree) if kind_of(node) == "per_rank"}
    if (count := _per_rank_count(tree)) != len(own):
        raise UnsupportedError(
            f"{count - len(own)} values that differ by rank are within a tuple or another value, expected them in mappings "
            f"and lists"
        )
    rank_values = [{name: node for name, node in values.items() if name in own} for values in state.rank_values]
    named = {*tensors_of(tree), *(name for values in rank_values for name in tensors_of(list(values.values())))}
    kept = {name: tensor for name, tensor in tensors.items() if name in named}
    rank_values = rank_values if own else []
    return dataclasses.replace(state, tree=tree, tensors=kept, objects=objects, rank_values=rank_values)


def _per_rank_count(node: Node) -> int:
    count, stack = 0, [node]
    while stack:
        one = stack.pop()
        count += kind_of(one) == "per_rank"
        stack.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
    return count


def tensors_of(node: Node) -> Iterator[str]:
    """Returns the names of all tensors below a node."""
    stack = [node]
    while stack:
        one = stack.pop()
        if kind_of(one) == "tensor":
            yield one["name"]
        elif isinstance(one, dict):
            entries = entries_of(one)
            stack.extend((one if entries is None else entries).values())
        elif isinstance(one, list):
            stack.extend(one)


def _children(node: Node) -> dict[Any, Node] | None:
    """Returns the children of a mapping, or of a list that contains values other than plain values."""
    entries = entries_of(node)
    if (
        entries is None
        and isinstance(node, list)
        and any(kind_of(child) in ("tensor", "per_rank") or _children(child) is not None for child in node)
    ):
        return dict(enumerate(node))
    return entries


def leaves(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    children = _children(node)
    if children is None:
        yield path, node
        return
    for key, value in children.items():
        yield from leaves(value, (*path, _tree.part_of(key)))


_NOTHING = object()


def _pruned(node: Node, path: Path, is_kept: Callable[[str, bool], bool], dropped: list[str]) -> Any:
    """Returns the node with only the kept leaves, or _NOTHING if the node has leaves but no kept leaf."""
    children = _children(node)
    if children is None:
        if is_kept(text_of(path), kind_of(node) == "tensor"):
            return node
        dropped.append(text_of(path))
        return _NOTHING
    pruned = {key: _pruned(value, (*path, _tree.part_of(key)), is_kept, dropped) for key, value in children.items()}
    kept = {key: value for key, value in pruned.items() if value is not _NOTHING}
    if not kept and children:
        return _NOTHING if path else {}
    if isinstance(node, list) and len(kept) == len(node):
        return list(kept.values())
    if all(type(key) is str for key in kept) and KIND not in kept:
        return kept
    nodes = {_key(key): key for key, _ in node["items"]} if kind_of(node) == "dict" else {}
    return {KIND: "dict", "items": [[nodes.get(key, key), value] for key, value in kept.items()]}


def _key(node: Node) -> Any:
    return _tree.Decoder(lambda name: name).decode(node)


@dataclasses.dataclass(frozen=True, eq=False)
class Renamed:
    """A tensor with a new name."""

    tensor: Tensor
    name: str

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.tensor, attribute)


def rename(state: State, new_name: Callable[[str], str]) -> State:
    """Flattens the state into one mapping whose keys are the new names of the leaves.

    Raises InvalidArgumentError if two names are the same.
    """
    tree: dict[str, Node] = {}
    tensors: dict[str, Tensor] = dict(state.tensors)
    first: dict[str, str] = {}
    for path, node in leaves(state.tree):
        name = new_name(text_of(path))
        if name in tree:
            raise InvalidArgumentError(f"two names become this one; the second is {text_of(path)!r}", tensor=name)
        if kind_of(node) == "tensor":
            node = {KIND: "tensor", "name": first.setdefault(node["name"], name)}
        elif kind_of(node) == "per_rank" and name != text_of(path):
            raise UnsupportedError("a per-rank value cannot be renamed; drop it", object=text_of(path))
        tree[name] = node
    renamed = [(old, new) for old, new in first.items() if old != new]
    moved = {new: Renamed(tensors[old], new) for old, new in renamed}
    for old, _ in renamed:
        tensors.pop(old, None)
    for new, tensor in moved.items():
        if new in tensors:
            raise InvalidArgumentError("a tensor within a value has this name already", tensor=new)
        tensors[new] = tensor
    order = {name: None for name in tree if name in tensors}
    tensors = {**{name: tensors[name] for name in order}, **tensors}
    return with_tree(state, as_mapping(tree), tensors, state.objects)


def as_mapping(entries: dict[str, Node]) -> dict[str, Node]:
    """Builds the node of a mapping with these keys."""
    return {KIND: "dict", "items": [[key, node] for key, node in entries.items()]} if KIND in entries else entries
