# SPDX-License-Identifier: Apache-2.0
"""Conversion of a state dict into slots and a tree."""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import hashlib
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import torch

from sealpoint import _sealpoint, _tree
from sealpoint._errors import Error, InvalidArgumentError
from sealpoint._options import StoreOptions
from sealpoint._ranks.call import Call
from sealpoint._ranks.saves import digest_of, frozen_patterns, rank_state
from sealpoint._tree import Node, Path, text_of
from sealpoint.torch import _first_rank, _meshes, _parameters, _shards, _subclasses, _versions
from sealpoint.torch._aliases import FirstNames, identity_of
from sealpoint.torch._options import SaveOptions
from sealpoint.torch._outline import LEAVES, TENSORS, Outline, outline_of, places_of_values

UNITED = _tree.UNITED  # object with the paths of mappings with different keys per rank
_HAS_ALIASES, _MAY_DIFFER, _IS_ON_MESH = 1, 2, 4
_NAMES_BYTES, _DECLARATION_BYTES, _TREE_BYTES = 8, 16, 16  # sizes of digests
_DESCRIBED = "torch.described"  # in Call.memory
T = TypeVar("T")


def is_stateful(value: Any) -> bool:
    """Tells whether an object has its own state, as torch.distributed.checkpoint defines it."""
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


class Notes:
    """Records facts about the objects in a state, in addition to their state dicts.

    Args:
        is_by_name: Read the state of optimizers by parameter name.
    """

    def __init__(self, state: Any, *, is_by_name: bool) -> None:
        self.names = _parameters.names_in(state)
        self.versions: _versions.Versions = {}
        self.parameters: _parameters.Parameters = {}
        self.united: list[str] = []  # see _tree.united_paths; on rank 0
        self.short_names: list[list[list[str]]] = []  # of each optimizer
        self._is_by_name = is_by_name

    def state_of(self, value: Any, path: Path) -> Any:
        """Returns the state of an object."""
        groups = _parameters.named_groups(value, self.names)
        if groups is None:
            return value.state_dict()
        self.short_names.append([[name.short for name in names] for names in groups])
        if self._is_by_name:
            return _parameters.flat_state(value, groups)
        self.parameters[text_of(path)] = [[name.full for name in names] for names in groups]
        return value.state_dict()


def plain_state(value: Any, notes: Notes | None = None, path: Path = ()) -> Any:
    """Replaces each stateful object in the state by its state dict."""
    if type(value) in LEAVES:
        return value
    if is_stateful(value):
        value = _parameters.of_rank(value)
        return plain_state(value.state_dict() if notes is None else notes.state_of(value, path), notes, path)
    if isinstance(value, Mapping):
        if notes is not None and (versions := _versions.of(value)) is not None:
            notes.versions[text_of(path)] = _versions.compact(versions)
        return {
            key: item if type(item) in LEAVES else plain_state(item, notes, (*path, _tree.part_of(key)))
            for key, item in value.items()
        }
    if type(value) in (list, tuple):
        return type(value)(plain_state(item, notes, (*path, i)) for i, item in enumerate(value))
    if isinstance(value, _tree.PerRank):
        return _tree.PerRank(plain_state(value.value))
    return value


class Gathered:
    """The part of a state that a rank saves."""

    node: Node
    rank_values: dict[str, Node]  # see per_rank
    state: _sealpoint.RankState  # complete, for the saver; see gather_agreed
    declarations: str | None = None  # see _ranks.saves.Held
    tree: bytes | None = None  # node, as stored
    head: bytes | None = None  # data that the ranks compare, without the digest of the tree; None: not yet known

    def __init__(self, names: FirstNames) -> None:
        self.names = names
        self.slots: list[_shards.Slot] = []
        self.kept: list[torch.Tensor] = []  # memory of the slots that are not empty
        self.notes = Notes({}, is_by_name=False)
        self.meshes: _meshes.Meshes = {}  # used only with compare_replicas=False
        self.of_first_rank: set[str] = set()  # tensors that only the first rank with the tensor stores

    def describe(self) -> None:
        """Adds the tree and the slots, if they were taken from the preceding save."""

    def remember(self) -> None:
        """Keeps data that the next save may reuse. Called when the state and the head are complete."""


class _Described(NamedTuple):
    """The description of a rank's state, kept for the next save. Does not keep the tensors alive."""

    key: Any  # further values on which the description depends
    outline: Outline
    places: list[tuple[Any, Any]]  # containers and keys of the outline's values in the tree
    node: Node
    rank_values: dict[str, Node]
    tree: bytes
    state: _sealpoint.RankState
    head: bytes
    can_rebind: bool  # each tensor has one slot, so memory can be replaced


class Collected(Gathered):
    """A state dict to save.

    If only values and the memory of tensors changed since the preceding save, the description of that save is reused.
    """

    def __init__(
        self, state: Any, rank: int, size: int, options: SaveOptions, names: FirstNames, memory: dict[str, Any]
    ) -> None:
        """``memory`` keeps the description for the next save."""
        super().__init__(names)
        self._paths: set[str] = set()
        self._may_differ = set(_first_rank.buffers_of(state)) if size > 1 else set()
        self._patterns = options.first_rank if size > 1 else ()
        self._notes_meshes = size > 1 and not options.compare_replicas
        self.notes = Notes(state, is_by_name=names.is_by_name)
        self._plain = plain_state(state, self.notes)
        self._memory, self._outline = memory, outline_of(self._plain) if names.is_first else None
        settings = repr(dataclasses.replace(options, step=None, parent=None, provenance=None, attributes=None))
        notes = _tree.dump([self.notes.versions, self.notes.parameters, self.notes.short_names])
        self._key = (rank, size, settings, self._may_differ, notes)
        self._is_described = False
        self._is_plain = self._outline is not None and self._outline.is_plain()
        self.encoder = _tree.Encoder(_shards.is_tensor, self._add_tensor, rank, size, options.allow_pickle, _subclasses.prepared,
                                      TENSORS if self._is_plain else ())  # fmt: skip
        self._plain_names: list[str] = []
        self._plain_tensors: list[torch.Tensor] = []
        try:
            is_known = self._recall()
        except Error:  # describe() raises the error with the place
            is_known = False
        if not is_known:
            self.describe()

    def describe(self) -> None:
        if not self._is_described:
            self.node = self.encoder.encode(self._plain)
            self._add_plain_slots()
            self.rank_values = self.encoder.rank_values
            self._is_described = True

    def _add_plain_slots(self) -> None:
        slots = _shards.plain_slots(self._plain_names, self._plain_tensors)
        if slots is not None:
            self.slots += slots
            self.kept += self._plain_tensors
            return
        for name, tensor in zip(self._plain_names, self._plain_tensors, strict=True):
            self.slots.extend(_shards.source_slots(tensor, name, self.kept.append))

    def _recall(self) -> bool:
        """Reuses the description of the preceding save if it also describes this state."""
        outline = self._outline
        kept = None if outline is None else self._memory.pop(_DESCRIBED, None)
        if kept is None or outline is None or kept.key != self._key or not outline.is_like(kept.outline):
            return False
        if outline.addresses != kept.outline.addresses:
            if not kept.can_rebind or outline.has_aliases():
                return False
            kept.state.rebind(outline.addresses)
        tree = kept.tree
        changed = [i for i, value in enumerate(outline.values) if repr(value) != repr(kept.outline.values[i])]
        if changed:
            for i in changed:
                container, key = kept.places[i]
                container[key] = self.encoder.encode(outline.values[i])
            tree = _tree.dump(kept.node)
            kept.state.replace_object(_tree.OBJECT, tree)
            if kept.rank_values:
                kept.state.replace_object(_tree.rank_object(self._key[0]), _tree.dump(kept.rank_values))
        self.node, self.rank_values, self.tree, self.state, self.head = kept.node, kept.rank_values, tree, kept.state, kept.head
        self._memory[_DESCRIBED] = kept._replace(outline=outline, tree=tree)
        return True

    def remember(self) -> None:
        assert self.tree is not None and self.head is not None
        if self._outline is None or self.of_first_rank or self.meshes:
            return
        can_rebind = self.state.addresses() == self._outline.addresses
        places = list(places_of_values(self._plain, self.node, self.rank_values)) if self._outline.values else []
        self._memory[_DESCRIBED] = _Described(self._key, self._outline, places, self.node, self.rank_values, self.tree, self.state,
                                              self.head, can_rebind)  # fmt: skip

    def _add_tensor(self, path: str, value: Any) -> str:
        if not path:
            raise InvalidArgumentError("a tensor has no name here, expected a mapping or a list of named values")
        if path in self._paths:
            raise InvalidArgumentError("duplicate path in the state", tensor=path)
        self._paths.add(path)
        is_own = self.encoder.is_per_rank or self._is_plain
        name = path if is_own else self.names.name_of(path, identity_of(value))
        if name == path:
            if path in self._may_differ or any(fnmatch.fnmatchcase(path, pattern) for pattern in self._patterns):
                self.of_first_rank.add(name)
            if self._is_plain:
                self._plain_names.append(name)
                self._plain_tensors.append(value)
                return name
            self.slots.extend(_shards.source_slots(value, name, self.kept.append))
            if self._notes_meshes:
                _meshes.note(self.meshes, name, value)
        return name


def agree(call: Call, make: Callable[[], tuple[T, bytes]], what: str) -> tuple[T, list[bytes]]:
    """Calls ``call.agree`` with autograd disabled, because autograd makes DTensor.to_local() take five times as long."""
    with torch.no_grad():
        return call.agree(make, what)


def collect(
    state: Any, communicator: Call, options: SaveOptions, look: Callable[[Call], Any] = lambda call: None
) -> Collected:
    """Collects this rank's part of a save; see ``gather_agreed``.

    ``look`` is called first. If ``look`` raises an error, the error is raised on all ranks.
    """

    def gather(names: FirstNames) -> Collected:
        look(communicator)
        return Collected(state, communicator.rank, communicator.size, options, names, communicator.memory)

    return gather_agreed(gather, communicator, options)


G = TypeVar("G", bound=Gathered)
Gather = Callable[[FirstNames], G]


def gather_agreed(gather: Gather[G], communicator: Call, options: StoreOptions) -> G:
    """Returns the result of gather(), with ``state`` set to the slots and this rank's objects.

    Collective: the ranks exchange one digest each. If the trees of the ranks differ, they are merged on rank 0. If all ranks have a
    tensor at the same places, the tensor is stored once. Otherwise, a second exchange follows, and the tensor is stored at each of
    its places. Optimizer state is stored by parameter number. If ranks have different parameters, it is stored by parameter name
    after a second exchange. A further exchange finds the first rank of each tensor that may differ between ranks.
    """
    gathered, answers, flags = _gather(gather, communicator, options, FirstNames(True))
    if flags & _IS_ON_MESH and not options.compare_replicas:
        _meshes.check_names(gathered.meshes, communicator)
    is_same, is_by_name = _is_same(answers), _has_other_parameters(answers)
    if is_by_name or (flags & _HAS_ALIASES and not is_same):
        names = FirstNames(is_used=not flags & _HAS_ALIASES or is_same, is_by_name=is_by_name)
        gathered, answers, flags = _gather(gather, communicator, options, names)
        is_same = _is_same(answers)
    if flags & _MAY_DIFFER or not is_same:
        gathered.describe()
    if flags & _MAY_DIFFER:
        _leave_to_first_rank(gathered, communicator, options)
    if not is_same:
        _unite(answers, communicator, gathered)
    if flags & _MAY_DIFFER or not is_same:
        gathered.declarations = gathered.tree = None
        gathered.state = _state_of(gathered, options, communicator.rank, has_tree=is_same or communicator.rank == 0)
    return gathered


def _state_of(gathered: Gathered, options: StoreOptions, rank: int, *, has_tree: bool) -> _sealpoint.RankState:
    """Builds the slots and objects of a rank."""
    state, notes = rank_state(gathered.slots, options), gathered.notes
    if has_tree:
        gathered.tree = _tree.dump(gathered.node)
        state.add_object(_tree.OBJECT, _tree.MEDIA_TYPE, gathered.tree)
        for name, content in ((_versions.OBJECT, notes.versions), (_parameters.OBJECT, notes.parameters), (UNITED, notes.united)):
            if content:
                state.add_object(name, _tree.MEDIA_TYPE, _tree.dump(content))
    if gathered.rank_values:
        state.add_object(_tree.rank_object(rank), _tree.MEDIA_TYPE, _tree.dump(gathered.rank_values))
    return state


def _is_same(answers: list[bytes]) -> bool:
    return all(answer[_NAMES_BYTES:] == answers[0][_NAMES_BYTES:] for answer in answers)


def _has_other_parameters(answers: list[bytes]) -> bool:
    """Tells whether the optimizers of the ranks have different parameters, as in pipeline stages."""
    found = {answer[:_NAMES_BYTES] for answer in answers} - {bytes(_NAMES_BYTES)}
    return len(found) > 1


def _gather(gather: Gather[G], communicator: Call, options: StoreOptions, names: FirstNames) -> tuple[G, list[bytes], int]:
    """Returns the result of gather(), the digests of all ranks, and the union of all ranks' flags.

    Each rank has two digests: one of the parameter names, and one of the tree.

    The ``state`` of the result is valid only if the digests of all ranks are equal.
    """

    def make() -> tuple[G, bytes]:
        gathered = gather(names)
        if gathered.head is None:
            gathered.state = _state_of(gathered, options, communicator.rank, has_tree=True)
            gathered.head = _head_of(gathered, patterns)
            gathered.remember()
        assert gathered.tree is not None
        return gathered, gathered.head + _digest(gathered.tree + _tree.dump(gathered.notes.versions), _TREE_BYTES)

    patterns = _patterns_of(options)
    gathered, answers = agree(communicator, make, "compared what they save")
    for number, pattern in enumerate(patterns):
        if not any(answer[1 + number] for answer in answers):
            raise InvalidArgumentError(f"the pattern {pattern!r} of frozen or first_rank matches no tensor of any rank; [ and ] "
                                       "enclose a class of characters, and [[] matches a bracket")
    flags = functools.reduce(operator.or_, (answer[0] for answer in answers))
    answers = [answer[1 + len(patterns) :] for answer in answers]
    gathered.declarations = digest_of(answer[:_DECLARATION_BYTES] for answer in answers)
    return gathered, [answer[_DECLARATION_BYTES:] for answer in answers], flags


def _head_of(gathered: Gathered, patterns: list[str]) -> bytes:
    names = gathered.notes.short_names
    flags = (_HAS_ALIASES if gathered.names.found > 0 else 0) | (_MAY_DIFFER if gathered.of_first_rank else 0)
    flags |= _IS_ON_MESH if gathered.meshes else 0
    declared = bytes.fromhex(gathered.state.declaration_digest())
    of_names = _digest(_tree.dump(names), _NAMES_BYTES) if names else bytes(_NAMES_BYTES)
    return bytes([flags]) + _fits(patterns, gathered) + declared + of_names


def _patterns_of(options: StoreOptions) -> list[str]:
    """Returns the tensor name patterns of all options. The patterns are the same on all ranks."""
    return [*frozen_patterns(options), *getattr(options, "first_rank", ())]


def _fits(patterns: list[str], gathered: Gathered) -> bytes:
    """Returns one byte per pattern: 1 if the pattern matches a tensor of this rank, 0 if not."""
    names = {slot.name for slot in gathered.slots} if patterns else set()
    return bytes(any(fnmatch.fnmatchcase(name, pattern) for name in names) for pattern in patterns)


def _digest(data: bytes, size_bytes: int) -> bytes:
    return hashlib.blake2b(data, digest_size=size_bytes).digest()


def _leave_to_first_rank(gathered: Gathered, communicator: Call, options: StoreOptions) -> None:
    """Assigns tensors that may differ to the first writing rank that has them. Collective."""
    writers = getattr(options, "writer_ranks", ())
    left = _first_rank.names_of_others(gathered.of_first_rank, communicator, writers)
    gathered.slots = [slot for slot in gathered.slots if slot.name not in left]


def _unite(answers: list[bytes], communicator: Call, collected: Gathered) -> None:
    """Merges one tree of each kind on rank 0. Errors: InvalidArgumentError, which is the same on all ranks."""
    trees = [answer[_NAMES_BYTES:] for answer in answers]
    is_first = trees.index(trees[communicator.rank]) == communicator.rank
    own = _tree.dump([collected.node, collected.notes.versions]) if is_first else b""
    parts = communicator.gather(own, 0, "united what they save")

    def unite() -> tuple[None, bytes]:
        pairs = [(rank, _tree.parse(bytes(part))) for rank, part in enumerate(parts or []) if len(part) > 0]
        if pairs:
            collected.node = _tree.merge([(rank, node) for rank, (node, _) in pairs])
            collected.notes.united = list(_tree.united_paths([node for _, (node, _) in pairs]))
        for _, (_, versions) in pairs:
            for path, found in versions.items():
                collected.notes.versions[path] = found | collected.notes.versions.get(path, {})
        return None, b""

    communicator.agree(unite, "united what they save")
