# SPDX-License-Identifier: Apache-2.0
"""Converts a state dict into slots and a tree."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch

from sealpoint import _sealpoint, _tree
from sealpoint._errors import InvalidArgumentError
from sealpoint._options import StoreOptions
from sealpoint._ranks.call import Call
from sealpoint._ranks.saves import digest_of, frozen_patterns, rank_state
from sealpoint._tree import Node, Path, text_of
from sealpoint.torch import _first_rank, _meshes, _parameters, _shards, _subclasses, _versions
from sealpoint.torch._aliases import FirstNames, identity_of
from sealpoint.torch._options import SaveOptions

UNITED = _tree.UNITED  # object with the paths of mappings with different keys per rank
_HAS_ALIASES, _MAY_DIFFER, _IS_ON_MESH = 1, 2, 4
_NAMES_BYTES, _DECLARATION_BYTES = 8, 16  # sizes of digests
T = TypeVar("T")


def is_stateful(value: Any) -> bool:
    """Tells whether an object has its own state, as torch.distributed.checkpoint defines it."""
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


class Notes:
    """Records about the objects in a state, in addition to their state dicts.

    Args:
        is_by_name: Take the state of optimizers by parameter name.
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
        self.short_names.append([[one.short for one in names] for names in groups])
        if self._is_by_name:
            return _parameters.flat_state(value, groups)
        self.parameters[text_of(path)] = [[one.full for one in names] for names in groups]
        return value.state_dict()


def plain_state(value: Any, notes: Notes | None = None, path: Path = ()) -> Any:
    """Replaces each stateful object in the state by its state dict."""
    if is_stateful(value):
        value = _parameters.of_rank(value)
        return plain_state(value.state_dict() if notes is None else notes.state_of(value, path), notes, path)
    if isinstance(value, Mapping):
        if notes is not None and (versions := _versions.of(value)) is not None:
            notes.versions[text_of(path)] = _versions.compact(versions)
        return {key: plain_state(one, notes, (*path, _tree.part_of(key))) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(plain_state(one, notes, (*path, i)) for i, one in enumerate(value))
    if isinstance(value, _tree.PerRank):
        return _tree.PerRank(plain_state(value.value))
    return value


class Gathered:
    """The part of a state that a rank saves."""

    node: Node
    rank_values: dict[str, Node]  # see per_rank
    state: _sealpoint.RankState  # complete, for the saver; see gather_agreed
    declarations: str | None = None  # see _ranks.saves.Held

    def __init__(self, names: FirstNames) -> None:
        self.names = names
        self.slots: list[_shards.Slot] = []
        self.kept: list[torch.Tensor] = []  # memory of the slots
        self.notes = Notes({}, is_by_name=False)
        self.meshes: _meshes.Meshes = {}  # with compare_replicas=False
        self.of_first_rank: set[str] = set()  # names stored as the first rank with the tensor holds it


class Collected(Gathered):
    """A state dict to save."""

    def __init__(self, state: Any, rank: int, size: int, options: SaveOptions, names: FirstNames) -> None:
        super().__init__(names)
        self._paths: set[str] = set()
        self._may_differ = set(_first_rank.buffers_of_ddp(state)) if size > 1 else set()
        self._patterns = options.first_rank if size > 1 else ()
        self._notes_meshes = size > 1 and not options.compare_replicas
        self._encoder = _tree.Encoder(_shards.is_tensor, self._add_tensor, rank, size, options.allow_pickle, _subclasses.prepared)
        self.notes = Notes(state, is_by_name=names.is_by_name)
        self.node = self._encoder.encode(plain_state(state, self.notes))
        self.rank_values = self._encoder.rank_values

    def _add_tensor(self, path: str, value: Any) -> str:
        if not path:
            raise InvalidArgumentError("a tensor has no name here, expected a mapping or a list, whose keys are its name")
        if path in self._paths:
            raise InvalidArgumentError("two places of the state have this path", tensor=path)
        self._paths.add(path)
        name = path if self._encoder.is_per_rank else self.names.name_of(path, identity_of(value))
        if name == path:
            if path in self._may_differ or any(fnmatch.fnmatchcase(path, one) for one in self._patterns):
                self.of_first_rank.add(name)
            self.slots.extend(_shards.source_slots(value, name, self.kept.append))
            if self._notes_meshes:
                _meshes.note(self.meshes, name, value)
        return name


def agree(call: Call, make: Callable[[], tuple[T, bytes]], what: str) -> tuple[T, list[bytes]]:
    """Calls ``call.agree`` without autograd, which makes DTensor.to_local() five times as slow."""
    with torch.no_grad():
        return call.agree(make, what)


def collect(
    state: Any, communicator: Call, options: SaveOptions, look: Callable[[Call], Any] = lambda call: None
) -> Collected:
    """Collects this rank's part of a save; see ``gather_agreed``.

    ``look`` is called first; its error is raised on all ranks.
    """

    def gather(names: FirstNames) -> Collected:
        look(communicator)
        return Collected(state, communicator.rank, communicator.size, options, names)

    return gather_agreed(gather, communicator, options)


G = TypeVar("G", bound=Gathered)
Gather = Callable[[FirstNames], G]


def gather_agreed(gather: Gather[G], communicator: Call, options: StoreOptions) -> G:
    """Returns the result of gather() with its ``state``: the slots, and this rank's objects.

    Collective: one exchange of a digest. If trees differ, they are united on rank 0. A tensor at several places is stored once
    if all ranks have it at the same places; otherwise, after a second exchange, at each place. Likewise, optimizer state is
    stored by number, or by name if ranks have different parameters. A further exchange finds the first ranks of tensors that
    may differ.
    """
    gathered, answers, flags = _gather(gather, communicator, options, FirstNames(True))
    if flags & _IS_ON_MESH and not options.compare_replicas:
        _meshes.check_names(gathered.meshes, communicator)
    is_same, is_by_name = _is_same(answers), _has_other_parameters(answers)
    if is_by_name or (flags & _HAS_ALIASES and not is_same):
        names = FirstNames(is_used=not flags & _HAS_ALIASES or is_same, is_by_name=is_by_name)
        gathered, answers, flags = _gather(gather, communicator, options, names)
        is_same = _is_same(answers)
    if flags & _MAY_DIFFER:
        _leave_to_first_rank(gathered, communicator, options)
    if not is_same:
        _unite(answers, communicator, gathered)
    if flags & _MAY_DIFFER or not is_same:
        gathered.declarations = None
        gathered.state = _state_of(gathered, options, communicator.rank, has_tree=is_same or communicator.rank == 0)
    return gathered


def _state_of(gathered: Gathered, options: StoreOptions, rank: int, *, has_tree: bool) -> _sealpoint.RankState:
    """Builds the slots and objects of a rank."""
    state, notes = rank_state(gathered.slots, options), gathered.notes
    if has_tree:
        state.add_object(_tree.OBJECT, _tree.MEDIA_TYPE, _tree.dump(gathered.node))
        for name, content in ((_versions.OBJECT, notes.versions), (_parameters.OBJECT, notes.parameters), (UNITED, notes.united)):
            if content:
                state.add_object(name, _tree.MEDIA_TYPE, _tree.dump(content))
    if gathered.rank_values:
        state.add_object(_tree.rank_object(rank), _tree.MEDIA_TYPE, _tree.dump(gathered.rank_values))
    return state


def _is_same(answers: list[bytes]) -> bool:
    return all(answer[_NAMES_BYTES:] == answers[0][_NAMES_BYTES:] for answer in answers)


def _has_other_parameters(answers: list[bytes]) -> bool:
    """Tells whether ranks have optimizers of different parameters, as in pipeline stages."""
    found = {answer[:_NAMES_BYTES] for answer in answers} - {bytes(_NAMES_BYTES)}
    return len(found) > 1


def _gather(gather: Gather[G], communicator: Call, options: StoreOptions, names: FirstNames) -> tuple[G, list[bytes], int]:
    """Returns the result of gather(), the digests of all ranks (parameter names, tree), and the flags set on any rank.

    Its ``state`` is valid if all ranks are equal.
    """

    def make() -> tuple[G, bytes]:
        gathered = gather(names)
        gathered.state = _state_of(gathered, options, communicator.rank, has_tree=True)
        notes = gathered.notes
        digest = hashlib.blake2b(_tree.dump(gathered.node) + _tree.dump(notes.versions), digest_size=16).digest()
        of_names = _digest(_tree.dump(notes.short_names)) if notes.short_names else bytes(_NAMES_BYTES)
        flags = (_HAS_ALIASES if gathered.names.found > 0 else 0) | (_MAY_DIFFER if gathered.of_first_rank else 0)
        flags |= _IS_ON_MESH if gathered.meshes else 0
        declared = bytes.fromhex(gathered.state.declaration_digest())
        return gathered, bytes([flags]) + _fits(patterns, gathered) + declared + of_names + digest

    patterns = _patterns_of(options)
    gathered, answers = agree(communicator, make, "compared what they save")
    for number, one in enumerate(patterns):
        if not any(answer[1 + number] for answer in answers):
            raise InvalidArgumentError(f"the pattern {one!r} of frozen or first_rank fits no tensor of any rank; [ and ] are a "
                                       "class of characters, and [[] is a bracket")
    flags, answers = functools.reduce(operator.or_, (one[0] for one in answers)), [one[1 + len(patterns) :] for one in answers]
    gathered.declarations = digest_of(one[:_DECLARATION_BYTES] for one in answers)
    return gathered, [one[_DECLARATION_BYTES:] for one in answers], flags


def _patterns_of(options: StoreOptions) -> list[str]:
    """Returns the tensor name patterns of an option; the same on all ranks."""
    return [*frozen_patterns(options), *getattr(options, "first_rank", ())]


def _fits(patterns: list[str], gathered: Gathered) -> bytes:
    """Returns one byte per pattern: whether it matches a tensor of this rank."""
    names = {slot.name for slot in gathered.slots} if patterns else set()
    return bytes(any(fnmatch.fnmatchcase(name, one) for name in names) for one in patterns)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_NAMES_BYTES).digest()


def _leave_to_first_rank(gathered: Gathered, communicator: Call, options: StoreOptions) -> None:
    """Assigns tensors that may differ to the first writing rank that has them. Collective."""
    writers = getattr(options, "writer_ranks", ())
    left = _first_rank.names_of_others(gathered.of_first_rank, communicator, writers)
    gathered.slots = [slot for slot in gathered.slots if slot.name not in left]


def _unite(answers: list[bytes], communicator: Call, collected: Gathered) -> None:
    """Merges one tree of each kind on rank 0. Raises InvalidArgumentError, the same on all ranks."""
    trees = [answer[_NAMES_BYTES:] for answer in answers]
    is_first = trees.index(trees[communicator.rank]) == communicator.rank
    own = _tree.dump([collected.node, collected.notes.versions]) if is_first else b""
    parts = communicator.gather(own, 0, "united what they save")

    def unite() -> tuple[None, bytes]:
        pairs = [(rank, _tree.parse(bytes(one))) for rank, one in enumerate(parts or []) if len(one) > 0]
        if pairs:
            collected.node = _tree.merge([(rank, node) for rank, (node, _) in pairs])
            collected.notes.united = list(_tree.united_paths([node for _, (node, _) in pairs]))
        for _, (_, versions) in pairs:
            for path, found in versions.items():
                collected.notes.versions[path] = found | collected.notes.versions.get(path, {})
        return None, b""

    communicator.agree(unite, "united what they save")
