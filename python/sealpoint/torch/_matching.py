# SPDX-License-Identifier: Apache-2.0
"""Matches a state dict with the tree of the checkpoint from which it is filled."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any

import torch

from sealpoint import _tree
from sealpoint._errors import CorruptError, Error, InvalidArgumentError
from sealpoint._tree import Node, Path, text_of
from sealpoint._tree_paths import entries_of, find, kind_of
from sealpoint.torch import _optimizers, _parameters, _shards, _subclasses, _values, _versions
from sealpoint.torch._aliases import Destinations
from sealpoint.torch._contract import Contract
from sealpoint.torch._differences import Difference
from sealpoint.torch._outline import TENSORS
from sealpoint.torch._state import is_stateful, plain_state

Put = Callable[[Any], None]  # sets the value at one place of a state


class Matching:
    """A state dict matched with a stored tree: the reads, their destinations, and the values to set at the end.

    Before ``apply`` is called, only the elements of tensors change.
    """

    def __init__(self, tree: Node, rank_values: Mapping[str, Node], rank: int, size: int, contract: Contract,
                 allow_pickle: bool, look: _optimizers.Look, versions: _versions.Versions,
                 parameters: _parameters.Parameters, united: Collection[str],
                 of_all_ranks: Sequence[Mapping[str, Node]] | None = None) -> None:
        self.destinations = Destinations()
        self.findings: list[tuple[str, str, str]] = []  # (kind, path, detail)
        self.forbidden: list[Difference] = []  # differences that the contract forbids
        self.matched: set[str] = set()  # paths of stored places in this rank's state
        self.stored: list[str] = []  # all stored places
        self._contract, self._rank, self._size = contract, rank, size
        self._rank_values, self._of_all_ranks = rank_values, of_all_ranks
        self._new_tensors = _tree.Decoder(self._new_tensor, allow_pickle)
        self._decoder = _tree.Decoder(self._refuse_tensor, allow_pickle)
        self._changes: list[Callable[[], None]] = []  # applied in this order at the end
        self._loads: list[tuple[Any, Any, list[Any]]] = []  # (object with a state, the part of it that has the state, state dict)
        self._within = ""  # kind of the enclosing object: see _object
        self._copies = _optimizers.Copies()
        self._look, self._versions, self._parameters, self._united = look, versions, parameters, united
        self._names: dict[int, _parameters.Names] = {}  # names of the parameters in the state
        self._tree = tree

    def match(self, state: Any) -> None:
        """Matches the state. Raises InvalidArgumentError for a state that cannot be filled in place."""
        self.stored = list(_leaves(self._tree, ()))
        if not (is_stateful(state) or isinstance(state, (MutableMapping, list))) or _shards.is_tensor(state):
            raise InvalidArgumentError(
                f"state is of type {type(state).__name__}, expected a mapping, a list or an object with state_dict() and "
                "load_state_dict(), to fill it in place; load_full() returns the saved state"
            )
        if isinstance(state, list) and not isinstance(self._tree, list):
            self._mark_matched(self._tree, ())
            return self._differ("kind", (), f"the state is a list, the checkpoint {_tree.brief(self._tree)}")
        self._names = _parameters.names_in(state)
        self._place(partial(operator.setitem, state, slice(None)), state, self._tree, ())  # sets the items if it is a list
        self.destinations.place_plain()

    def apply(self) -> list[str]:
        """Sets all values.

        Returns the paths of optimizer state dicts that are only copies. The optimizer does not receive the new hyper-parameters of
        a copy.
        """
        self.destinations.mark_changed()
        for change in self._changes:
            change()
        for whole, stateful, (state,) in self._loads:
            stateful.load_state_dict(state)
            _parameters.note_load(whole)
        return self._copies.changed()

    def _refuse_tensor(self, name: str) -> Any:
        raise CorruptError("a value has a tensor within it", tensor=name)

    def _differ(self, what: str, path: Path, detail: str) -> None:
        rule = getattr(self._contract, what)
        if rule == "error":
            self.forbidden.append((what, text_of(path), "" if what == "missing" else detail))
        if rule == "report":
            self.findings.append((what, text_of(path), detail))

    def _mapping(self, live: MutableMapping[Any, Any], node: Node, path: Path) -> None:
        stored = entries_of(node)
        if stored is None:
            self._mark_matched(node, path)
            return self._differ("kind", path, f"the state has a mapping, the checkpoint {_tree.brief(node)}")
        if _optimizers.lacks_all_state(live, node):
            self._mark_matched(node, path)
            self.forbidden.append(("optimizer", text_of(path), _optimizers.NO_STATE))
            return None
        way_out = _optimizers.way_out_of_other_form(live, node)
        if way_out is not None:
            self._mark_matched(node, path)
            self.forbidden.append(("optimizer", text_of(path), way_out))
            return None
        for i, live_count, stored_count in _optimizers.group_sizes_that_differ(live, node):
            detail = f"the optimizer has {live_count} parameters, the checkpoint {stored_count}"
            self._differ("kind", (*path, "param_groups", i), detail)
        absent = []
        prefix = _prefix_of(path)
        for key in list(live):
            if self._add_plain(live[key], stored.get(key), key, prefix):
                continue
            place = (*path, _tree.part_of(key))
            name = str(key) if type(key) is int and key not in stored else key  # all DCP keys are strings
            found = stored[name] if name in stored else find(stored, str(key))
            if found is not None or name in stored:
                self._place(partial(operator.setitem, live, key), live[key], found, place)
            else:
                absent.append((place, live[key]))
        if path and absent and len(absent) == len(live):
            absent = [(path, live)]
        for place, value in absent:
            self._missing(value, place)

    def _add_plain(self, live: Any, node: Node, key: Any, prefix: str) -> bool:
        """Matches a tensor that needs none of the checks of ``_place``. Returns False for any other value."""
        if type(live) not in TENSORS or type(key) is not str or kind_of(node) != "tensor" or key.endswith(_values.EXTRA_STATE):
            return False
        self.matched.add(prefix + key)
        self.destinations.add_plain(live, node["name"])
        return True

    def _missing(self, live: Any, path: Path) -> None:
        """Records a value that the checkpoint lacks.

        If missing values are allowed and an object has no stored state at all, records one finding for the whole object.
        """
        leaves = list(_live_leaves(live, path))
        if self._contract.missing != "error" and len(leaves) > 1:
            detail = f"the checkpoint lacks all of its {len(leaves)} values; they stay unchanged"
            return self.findings.append(("missing", text_of(path), detail))
        for leaf in leaves:
            self._differ("missing", leaf, "the checkpoint does not have it")

    def _place(self, put: Put, live: Any, node: Node, path: Path) -> None:
        """Matches one place of the state with its node. ``put`` sets the value at this place."""
        if is_stateful(live) and not _shards.is_tensor(live):
            self._object(live, node, path)
        elif path and str(path[-1]).rpartition(".")[2] == _values.EXTRA_STATE:
            self._extra_state(put, live, node, path)
        elif self._is_state_of_parameter(path) and _values.are_of_other_kinds(live, node):
            self._make(put, node, path)
        elif _subclasses.is_one(live) or _tree.kind_of_parts(node):
            self._parts(live, node, path)
        elif _shards.is_tensor(live):
            self._tensor(live, node, path)
        elif self._is_replaced(live, node, path):
            self._replace(put, live, node, path)
        elif self._within == "other" and _values.is_empty(live) and _values.makes_tensors(node):
            self._make(put, node, path)
        elif isinstance(live, MutableMapping):
            if not self._within:
                self._copies.note(text_of(path), live)
            self._mapping(live, node, path)
        elif isinstance(live, _tree.PerRank) or kind_of(node) == "per_rank":
            self._rank_value(put, live, node, path)
        elif _is_nested(live) or _items(node) is not None or kind_of(node) == "tensor":
            self._sequence(put, live, node, path)
        elif entries_of(node) is not None:
            self._mark_matched(node, path)
            self._differ("kind", path, f"the state has a value of type {type(live).__name__}, the checkpoint a mapping")
        else:
            self._mark_matched(node, path)
            self._changes.append(partial(put, _values.in_container_of(live, self._value(node, path))))

    def _is_replaced(self, live: Any, node: Node, path: Path) -> bool:
        """Tells whether a value is replaced as a whole.

        If the keys of a mapping differ between ranks, the mapping is replaced only if the live mapping is empty.
        """
        if not (path or self._within) or (text_of(path) in self._united and not _values.is_empty(live)):
            return False
        return _values.are_replaced(live, node, has_strict_keys=self._within in ("strict", "optimizer"))

    def _object(self, live: Any, node: Node, path: Path) -> None:
        """Matches an object with ``load_state_dict()``.

        The keys of modules, optimizers, schedulers and scalers must match exactly.
        """
        whole, live = live, _parameters.of_rank(live)
        found = _parameters.by_names(live, node, self._names, self._parameters.get(text_of(path)), self._size == 1)
        if isinstance(found, _parameters.Matched):
            node, matched = found.node, self.matched
            self.matched = set()  # contains the paths with the optimizer's own numbers
        wrong = found if isinstance(found, str) else next(_parameters.misfits(live, node, lambda name: self._look(name)[0]), None)
        scaler = _values.why_scaler_differs(live, node)
        if wrong is not None:
            self._mark_matched(node, path)
            self.forbidden.append(("optimizer", text_of(path), wrong))
        elif scaler is not None:
            self._mark_matched(node, path)
            self._differ("kind", path, scaler)
        else:
            self._fill(whole, live, node, path)
        if isinstance(found, _parameters.Matched):
            self.matched = matched
            for place, stored in found.places:
                self._mark_matched(stored, (*path, *place))

    def _fill(self, whole: Any, live: Any, node: Node, path: Path) -> None:
        """Fills the state of ``live``. ``live`` is ``whole`` or its rank-local part."""
        for group, key, detail in _optimizers.changed_hyper_parameters(live, node):
            self.findings.append(("value", text_of((*path, "param_groups", group, key)), detail))
        holder = [self._state_of(live, node, path)]
        outer, self._within = self._within, _values.kind_of_object(live)
        if self._within != "other" and isinstance(holder[0], MutableMapping):
            self._mapping(holder[0], node, path)
        else:
            self._place(partial(operator.setitem, holder, 0), holder[0], node, path)
        self._within = outer
        self._loads.append((whole, live, holder))

    def _replace(self, put: Put, live: Any, node: Node, path: Path) -> None:
        """Replaces a value that contains no tensors, whatever its form."""
        self._mark_matched(node, path)
        stored = entries_of(node)
        if isinstance(live, Mapping) and stored is not None and self._contract.missing != "allow":
            gone = [key for key in live if key not in stored and str(key) not in stored]
            places = [text_of((*path, _tree.part_of(key))) for key in gone]
            self.findings += [("missing", place, "its whole mapping was replaced") for place in places]
        value = self._value(node, path)
        self._changes.append(lambda: put(_values.in_container_of(live, value)))

    def _make(self, put: Put, node: Node, path: Path) -> None:
        """Creates a value with tensors for which the state has no memory. The tensors are new and on the CPU."""
        self._mark_matched(node, path)
        made = self._new_tensors.decode(node)
        self._changes.append(partial(put, made))

    def _extra_state(self, put: Put, live: Any, node: Node, path: Path) -> None:
        """Matches the extra state of a module. The form of such state may differ between saves."""
        if kind_of(node) == "tensor" and isinstance(live, torch.Tensor):
            if self._look(node["name"]) == (tuple(live.shape), live.dtype):
                return self._tensor(live, node, path)
        return self._make(put, node, path)

    def _state_of(self, value: Any, node: Node, path: Path) -> Any:
        """Returns the state as ``plain_state`` does, with tensors for stored optimizer state and with stored module versions.

        Optimizers within the state of an object are treated in the same way.
        """
        if is_stateful(value):
            return _optimizers.complete(value, self._state_of(value.state_dict(), node, path), node, self._look)
        if _values.is_of_own_kind(value):
            return copy.copy(value)
        if isinstance(value, Mapping):
            stored = entries_of(node) or {}
            made = {key: self._state_of(item, stored.get(key), (*path, _tree.part_of(key))) for key, item in value.items()}
            live = _versions.of(value)
            return made if live is None else _versions.attached(made, self._versions.get(text_of(path)), live)
        if type(value) in (list, tuple):
            items = node.get("items") if kind_of(node) == "tuple" else node if isinstance(node, list) else None
            nodes = items if items is not None and len(items) == len(value) else [None] * len(value)
            pairs = zip(value, nodes, strict=True)
            return type(value)(self._state_of(pair, inner, (*path, i)) for i, (pair, inner) in enumerate(pairs))
        return plain_state(value)

    def _value(self, node: Node, path: Path) -> Any:
        try:
            return self._decoder.decode(node)
        except Error as error:
            if error.object is None:
                error.object = text_of(path)
            raise

    def _mark_matched(self, node: Node, path: Path) -> None:
        self.matched.update(_leaves(node, path))

    def _tensor(self, live: Any, node: Node, path: Path) -> None:
        self._mark_matched(node, path)
        if kind_of(node) != "tensor":
            return self._differ("kind", path, f"the state has a tensor, the checkpoint {_tree.brief(node)}")
        self.destinations.add(live, node["name"])

    def _parts(self, live: Any, node: Node, path: Path) -> None:
        """Matches a composed tensor."""
        self._mark_matched(node, path)
        wrong = _subclasses.why_differs(live, node)
        if wrong is not None:
            return self._differ("kind", path, wrong)
        for name, part, stored in _subclasses.pairs(live, node):
            if _subclasses.is_one(part):
                self._parts(part, stored, (*path, name))
            else:
                self.destinations.add(part, stored["name"])
        return None

    def _sequence(self, put: Put, live: Any, node: Node, path: Path) -> None:
        items = node if isinstance(node, list) else node["items"] if kind_of(node) == "tuple" else None
        if not isinstance(live, (list, tuple)) or items is None or len(items) != len(live):
            if items is not None and self._may_grow(live, path):
                return self._make(put, node, path)
            self._mark_matched(node, path)
            count = f"{len(live)} elements" if isinstance(live, (list, tuple)) else f"a value of type {type(live).__name__}"
            stored = f"{len(items)} elements" if items is not None else _tree.brief(node)
            return self._differ("kind", path, f"the state has {count}, the checkpoint {stored}")
        filled = live if isinstance(live, list) else list(live)
        for i, (item, stored_one) in enumerate(zip(live, items, strict=True)):
            self._place(partial(operator.setitem, filled, i), item, stored_one, (*path, i))
        if isinstance(live, tuple):
            self._changes.append(lambda: put(_values.in_container_of(live, tuple(filled))))

    def _is_state_of_parameter(self, path: Path) -> bool:
        """Tells whether a path belongs to per-parameter optimizer state."""
        return self._within == "optimizer" and "state" in path

    def _may_grow(self, live: Any, path: Path) -> bool:
        """Tells whether the owner of this list adds tensors to the list as it runs, as LBFGS does with its history."""
        is_of_object = self._within == "other" or self._is_state_of_parameter(path)
        return is_of_object and isinstance(live, (list, tuple)) and all(type(item) is torch.Tensor for item in live)

    @staticmethod
    def _stored_of(values: Mapping[str, Node], path: Path, rank: int) -> Node:
        if text_of(path) not in values:
            raise CorruptError(f"the object of rank {rank} lacks a value", object=text_of(path))
        return values[text_of(path)]

    def _new_tensor(self, name: str) -> torch.Tensor:
        shape, dtype = self._look(name)
        made = torch.empty(shape, dtype=dtype, device="cpu")
        self.destinations.add(made, name)
        return made

    def _rank_value(self, put: Put, live: Any, node: Node, path: Path) -> None:
        self._mark_matched(node, path)
        if kind_of(node) != "per_rank":
            return self._differ("kind", path, f"the state has a per_rank, the checkpoint {_tree.brief(node)}")
        if self._of_all_ranks is not None:
            values = [self._new_tensors.decode(self._stored_of(item, path, rank))
                      for rank, item in enumerate(self._of_all_ranks[: node["size"]])]
            return self._changes.append(lambda: put(values))
        if node["size"] != self._size:
            detail = f"{node['size']} ranks saved it, {self._size} load; see all_ranks of sealpoint.torch.load"
            return self._differ("per_rank", path, detail)
        stored = self._stored_of(self._rank_values, path, self._rank)
        inner = live.value if isinstance(live, _tree.PerRank) else live
        holder = [inner]
        self._place(partial(operator.setitem, holder, 0), inner, stored, (*path, f"rank{self._rank}"))
        self._changes.append(lambda: put(_tree.PerRank(holder[0]) if isinstance(live, _tree.PerRank) else holder[0]))


def _items(node: Node) -> list[Node] | None:
    """Returns the items of a list or tuple, or None if the items are not matched individually.

    Items are matched individually if the list contains mappings, tensors or per-rank values.
    """
    items = node if isinstance(node, list) else node.get("items") if kind_of(node) == "tuple" else None
    if items is None or not any(
        entries_of(item) is not None or kind_of(item) in ("tensor", "per_rank") or _items(item) for item in items
    ):
        return None
    return items


def _leaves(node: Node, path: Path) -> Iterator[str]:
    entries = entries_of(node)
    if entries is None and (items := _items(node)) is not None:
        entries = dict(enumerate(items))
    if entries is None:
        yield text_of(path)
        return
    prefix = _prefix_of(path)
    for key, value in entries.items():
        if kind_of(value) == "tensor":
            yield f"{prefix}{_tree.part_of(key)}"
        else:
            yield from _leaves(value, (*path, _tree.part_of(key)))


def _prefix_of(path: Path) -> str:
    """Returns the text of a path, in the form that precedes the name of an inner part."""
    return text_of(path) + "." if path else ""


def _live_leaves(value: Any, path: Path) -> Iterator[Path]:
    """Returns the leaves of a state, as ``_leaves`` does."""
    state = plain_state(value) if is_stateful(value) and not _shards.is_tensor(value) else value
    entries = state.items() if isinstance(state, Mapping) else enumerate(state) if _is_nested(state) else ()
    if not entries:
        yield path
    for key, entry in entries:
        yield from _live_leaves(entry, (*path, _tree.part_of(key)))


def _is_nested(value: Any) -> bool:
    """Tells whether a list or tuple contains mappings, tensors, per-rank values or stateful objects."""
    return isinstance(value, (list, tuple)) and any(
        isinstance(item, (Mapping, _tree.PerRank)) or _shards.is_tensor(item) or is_stateful(item) or _is_nested(item)
        for item in value
    )
