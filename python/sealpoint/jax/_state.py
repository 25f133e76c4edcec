# SPDX-License-Identifier: Apache-2.0
"""Converts pytrees into slots and a tree (spec/tree.md), and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from sealpoint import _sealpoint, _tree
from sealpoint._errors import InvalidArgumentError, MismatchError
from sealpoint._options import SaveOptions
from sealpoint._ranks.call import Call
from sealpoint._ranks.saves import digest_of, rank_state
from sealpoint._tree import Node, Path, text_of
from sealpoint._tree_paths import entries_of, kind_of, nest
from sealpoint.jax import _arrays
from sealpoint.jax._jax import jax
from sealpoint.jax._options import LoadOptions

_KEYS = jax.tree_util
# An array of jax.random keys is stored as an array of integer words, together with the name of the generator implementation.
KEY_DATA, KEY_IMPL = "key_data", "impl"
_DECLARATION_BYTES = 16  # size of a digest


def path_of(keys: Any) -> Path:
    """Returns the path of a leaf. Raises InvalidArgumentError if a key in the path has no readable name."""
    path: list[str | int] = []
    for key in keys:
        if isinstance(key, (_KEYS.DictKey, _KEYS.FlattenedIndexKey)):
            path.append(_tree.part_of(key.key))
        elif isinstance(key, _KEYS.SequenceKey):
            path.append(key.idx)
        elif isinstance(key, _KEYS.GetAttrKey):
            path.append(key.name)
        else:
            raise InvalidArgumentError(
                f"key {key!r} of a container has no name, see jax.tree_util.register_pytree_with_keys"
            )
    return tuple(path)


def leaves_of(state: Any) -> tuple[list[tuple[Path, Any]], Any]:
    """Returns the leaves of a pytree with their paths, and the structure of the pytree. Leaves that are None are included."""
    found, structure = jax.tree_util.tree_flatten_with_path(
        state, is_leaf=lambda one: one is None or isinstance(one, _tree.PerRank)
    )
    return [(path_of(keys), leaf) for keys, leaf in found], structure


class Collected:
    """The part of a pytree that this process saves."""

    state: _sealpoint.RankState
    declarations: str | None

    def __init__(self, state: Any, call: Call, allow_pickle: bool) -> None:
        self.kept: list[Any] = []  # memory of the slots
        self.slots: list[_arrays.Slot] = []
        self._names: set[str] = set()
        self._encoder = _tree.Encoder(_arrays.is_array, self._add, call.rank, call.size, allow_pickle)
        leaves, _ = leaves_of(state)
        if [path for path, _ in leaves] == [()]:
            raise InvalidArgumentError("the state is a single value, expected a container, whose keys are its names")
        self.node: Node = nest((path, self._node_of(leaf, path)) for path, leaf in leaves)
        self.rank_values = self._encoder.rank_values

    def _node_of(self, leaf: Any, path: Path) -> Node:
        if not _arrays.is_key(leaf):
            return self._encoder.encode(leaf, path)
        data = self._encoder.encode(jax.random.key_data(leaf), (*path, KEY_DATA))
        return {KEY_DATA: data, KEY_IMPL: str(jax.random.key_impl(leaf))}

    def _add(self, name: str, value: Any) -> str:
        if name in self._names:
            raise InvalidArgumentError("duplicate path in the state", tensor=name)
        self._names.add(name)
        self.slots.extend(_arrays.source_slots(value, name, self.kept.append))
        return name

    def declare(self, options: SaveOptions, rank: int) -> None:
        """Builds ``state`` for the saver."""
        self.state = rank_state(self.slots, options)
        if rank == 0:
            self.state.add_object(_tree.OBJECT, _tree.MEDIA_TYPE, _tree.dump(self.node))
        if self.rank_values:
            self.state.add_object(_tree.rank_object(rank), _tree.MEDIA_TYPE, _tree.dump(self.rank_values))


def collect(state: Any, call: Call, options: SaveOptions) -> Collected:
    """Collects the state.

    Collective. Only the elements of arrays may differ between processes. Any other difference raises InvalidArgumentError.
    """

    def make() -> tuple[Collected, bytes]:
        collected = Collected(state, call, options.allow_pickle)
        collected.declare(options, call.rank)
        declared = bytes.fromhex(collected.state.declaration_digest())
        return collected, declared + hashlib.blake2b(_tree.dump(collected.node), digest_size=16).digest()

    collected, answers = call.agree(make, "compared what they save")
    trees = [answer[_DECLARATION_BYTES:] for answer in answers]
    if any(tree != trees[0] for tree in trees):
        nodes = [_tree.parse(bytes(answer)) for answer in call.all_gather(_tree.dump(collected.node), "compared what they save")]
        _tree.merge(list(enumerate(nodes)))  # raises an error that names the first value that differs
        other = next(rank for rank, tree in enumerate(trees) if tree != trees[0])
        raise InvalidArgumentError(f"rank {other} does not have the same names as rank 0", rank=other)
    collected.declarations = digest_of(answer[:_DECLARATION_BYTES] for answer in answers)
    return collected


def stored_leaves(node: Node, path: Path = ()) -> Iterator[tuple[str, Node]]:
    """Returns the text of the path and the value for each leaf of a tree. Empty containers are leaves."""
    items: Any = entries_of(node)
    if items is None and isinstance(node, list):
        items = dict(enumerate(node))
    elif items is None and kind_of(node) in ("tuple", "size"):
        items = dict(enumerate(node["items"]))
    if not items:
        yield text_of(path), node
        return
    for key, value in items.items():
        yield from stored_leaves(value, (*path, _tree.part_of(key)))


class Matched:
    """A pytree matched with the tree of a checkpoint: the tensors to read, with their destinations, and the values."""

    def __init__(self, like: Any, node: Node, rank_values: dict[str, Node], size: int, options: LoadOptions) -> None:
        self.slots: list[_arrays.Slot] = []
        self._stored = dict(stored_leaves(node))
        self._unmatched = dict.fromkeys(self._stored)
        self._rank_values, self._size = rank_values, size
        self._decoder = _tree.Decoder(self._no_tensor, options.allow_pickle)
        leaves, self._structure = leaves_of(like)
        self._made = [self._match(leaf, path) for path, leaf in leaves]
        if self._unmatched and not options.partial:
            names = list(self._unmatched)
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            raise MismatchError(
                f"unexpected: the checkpoint has {', '.join(names[:5])}{more}, which the state does not have; partial=True "
                "ignores them", tensor=names[0],
            )

    @staticmethod
    def _no_tensor(name: str) -> Any:
        raise MismatchError("stored as a tensor, expected a value", tensor=name)

    def _take(self, text: str) -> Node:
        if text not in self._stored:
            raise MismatchError("missing: the checkpoint does not have it", tensor=text)
        self._unmatched.pop(text, None)
        return self._stored[text]

    def _match(self, leaf: Any, path: Path) -> Any:
        """Matches a leaf with the checkpoint.

        Returns a function that returns the value of the leaf. Call this function after the load.
        """
        text = text_of(path)
        if _arrays.is_key(leaf):
            data = jax.eval_shape(jax.random.key_data, leaf)
            impl, stored = jax.random.key_impl(leaf), self._take(text_of((*path, KEY_IMPL)))
            if stored != str(impl):
                raise MismatchError(f"keys of {stored}, expected those of {impl}", tensor=text)
            sharding = getattr(leaf, "sharding", None)
            like = jax.ShapeDtypeStruct(data.shape, data.dtype, sharding=_of_words(sharding, len(leaf.shape)))
            target = self._target(like, text_of((*path, KEY_DATA)))
            return lambda: jax.random.wrap_key_data(target.array(), impl=impl)
        if _arrays.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct):
            return self._target(leaf, text).array
        if isinstance(leaf, _tree.PerRank):
            node = self._rank_value(text)
            return lambda: _tree.PerRank(self._decoder.decode(node))
        node = self._take(text)
        if kind_of(node) == "per_rank":
            node = self._rank_value(text)
        value = self._decoder.decode(node)
        if leaf is not None and type(value) is not type(leaf) and not (value is not None and _both_numbers(value, leaf)):
            raise MismatchError(
                f"kind: stored as {_tree.brief(node)}, expected a value of type {type(leaf).__name__}", object=text
            )
        return lambda: value

    def _rank_value(self, text: str) -> Node:
        node = self._take(text)
        if kind_of(node) != "per_rank":
            return node
        if node["size"] != self._size or text not in self._rank_values:
            raise MismatchError(f"per_rank: saved by {node['size']} ranks, loaded by {self._size}", object=text)
        return self._rank_values[text]

    def _target(self, leaf: Any, text: str) -> _arrays.Target:
        node = self._take(text)
        if kind_of(node) != "tensor":
            raise MismatchError(f"kind: stored as {_tree.brief(node)}, expected a tensor", object=text)
        target, slots = _arrays.target_of(leaf, node["name"])
        self.slots.extend(slots)
        return target

    def state(self) -> Any:
        """Returns a pytree of the same structure with the loaded values. Call it after the load."""
        return jax.tree_util.tree_unflatten(self._structure, [make() for make in self._made])


def _both_numbers(value: Any, other: Any) -> bool:
    return isinstance(value, (int, float)) and isinstance(other, (int, float)) and not (
        isinstance(value, bool) or isinstance(other, bool)
    )


def _of_words(sharding: Any, ndim: int) -> Any:
    """Converts the sharding of an array of PRNG keys to the sharding of the integer words that represent the keys.

    The array of words has an additional dimension, which is never split.
    """
    if isinstance(sharding, jax.sharding.NamedSharding):
        spec = (*sharding.spec, *([None] * (ndim - len(sharding.spec))), None)
        return jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec(*spec))
    return sharding
