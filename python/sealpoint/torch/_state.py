# SPDX-License-Identifier: Apache-2.0
"""From a state dict to slots and a tree, and back into a state dict."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import torch

from sealpoint import _arguments, _sealpoint, _tree
from sealpoint._agreement import ANSWER, ERROR, dump_error, parse_error
from sealpoint._errors import CorruptError, Error, InvalidArgumentError, MismatchError
from sealpoint._native import check_none
from sealpoint._options import StoreOptions
from sealpoint._tree import Node, Path, text_of
from sealpoint._tree_paths import entries_of, find, kind_of
from sealpoint.torch import _first_rank, _optimizers, _parameters, _shards, _versions
from sealpoint.torch._aliases import Destinations, FirstNames, identity_of
from sealpoint.torch._differences import Difference
from sealpoint.torch._options import Contract, SaveOptions
from sealpoint.torch._session import Call

_HAS_ALIASES, _MAY_DIFFER = 1, 2
T = TypeVar("T")
Put = Callable[[Any], None]  # sets the value of one place of a state


def is_stateful(value: Any) -> bool:
    """As torch.distributed.checkpoint has it: an object with a state of its own."""
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def plain_state(value: Any, found: _versions.Versions | None = None, path: Path = ()) -> Any:
    """With the state dicts of what has one, wherever in the state. ``found``: gets the versions of modules."""
    if is_stateful(value):
        return plain_state(value.state_dict(), found, path)
    if isinstance(value, Mapping):
        if found is not None and (versions := _versions.of(value)) is not None:
            found[text_of(path)] = _versions.compact(versions)
        return {key: plain_state(one, found, (*path, _tree.part_of(key))) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(plain_state(one, found, (*path, i)) for i, one in enumerate(value))
    if isinstance(value, _tree.PerRank):
        return _tree.PerRank(plain_state(value.value))
    return value


class Gathered:
    """What a rank has to save."""

    node: Node
    rank_values: dict[str, Node]  # see per_rank
    state: _sealpoint.RankState  # all of it, for the saver; see gather_agreed

    def __init__(self, names: FirstNames) -> None:
        self.names = names
        self.slots: list[_shards.Slot] = []
        self.kept: list[torch.Tensor] = []  # memory of the slots
        self.versions: _versions.Versions = {}
        self.of_first_rank: set[str] = set()  # names of those that the first rank stores which has them


class Collected(Gathered):
    """A state dict that is to be saved."""

    def __init__(self, state: Any, rank: int, size: int, options: SaveOptions, names: FirstNames) -> None:
        super().__init__(names)
        self._paths: set[str] = set()
        self._may_differ = set(_first_rank.buffers_of_ddp(state)) if size > 1 else set()
        self._patterns = options.first_rank if size > 1 else ()
        self._encoder = _tree.Encoder(_shards.is_tensor, self._add_tensor, rank, size, options.allow_pickle)
        self.node = self._encoder.encode(plain_state(state, self.versions))
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
        return name


def agree(communicator: Call, make: Callable[[], tuple[T, bytes]], what: str) -> tuple[T, list[bytes]]:
    """What make() returns, and the answers (its second value) of all ranks. Collective.

    What goes wrong on one rank is an error of all, and names that rank. So is a rank that makes another call. ``what``: see
    ``Call``.
    """
    made: T | None = None
    error: Exception | None = None
    try:
        with torch.no_grad():  # DTensor.to_local() costs a fifth of what it does for autograd
            made, answer = make()
        message = ANSWER + answer
    except Exception as failed:  # the others must not wait for this rank, whatever it is
        error, message = failed, ERROR + dump_error(failed, communicator.rank, communicator.host)
    answers = [bytes(one) for one in communicator.all_gather(message, what)]
    for one in answers:
        if one[:1] == ERROR:
            raise parse_error(one[1:]) from error
    communicator.check_same()
    return cast(T, made), [one[1:] for one in answers]


def run_on_first(communicator: Call, make: Callable[[], Node]) -> Node:
    """What make() returns on rank 0, on all ranks; or its error. Collective."""
    what = "waited for what rank 0 found"
    _, answers = agree(communicator, lambda: (None, _tree.dump(make()) if communicator.rank == 0 else b""), what)
    return _tree.parse(answers[0])


def look_first(communicator: Call, path: _arguments.Path, check: Callable[[str], None]) -> bytes:
    """Runs check(path) on rank 0; within what ``agree`` runs. What cannot be looked at is left to the call itself.

    Returns: no bytes to gather.
    """
    if communicator.rank == 0:
        try:
            check(_arguments.path_of(path))
        except OSError as error:
            if isinstance(error, Error):
                raise
    return b""


def collect(
    state: Any, communicator: Call, options: SaveOptions, directory: _arguments.Path | None = None
) -> Collected:
    """What this rank saves; see ``gather_agreed``. Errors: AlreadyExistsError (a native checkpoint is in the directory)."""

    def gather(names: FirstNames) -> Collected:
        if directory is not None:
            look_first(communicator, directory, check_none)
        return Collected(state, communicator.rank, communicator.size, options, names)

    return gather_agreed(gather, communicator, options)


G = TypeVar("G", bound=Gathered)
Gather = Callable[[FirstNames], G]


def gather_agreed(gather: Gather[G], communicator: Call, options: StoreOptions) -> G:
    """What gather() returns, with its ``state``: the slots, and this rank's objects.

    Collective: one exchange of a digest; if trees differ, they are united on rank 0. A tensor at several places is
    stored once if all ranks see it at the same ones; else, after a second exchange, at each place. A further exchange finds
    the first ranks of tensors that may differ.
    """
    gathered, own, answers, flags = _gather(gather, communicator, options, use_aliases=True)
    is_same = all(answer == answers[0] for answer in answers)
    if flags & _HAS_ALIASES and not is_same:
        gathered, own, answers, flags = _gather(gather, communicator, options, use_aliases=False)
        is_same = all(answer == answers[0] for answer in answers)
    if flags & _MAY_DIFFER:
        _leave_to_first_rank(gathered, communicator, options)
    if not is_same:
        _unite(answers, communicator, gathered)
    if is_same or communicator.rank == 0:
        tree = own if is_same else _tree.dump(gathered.node)
        gathered.state.add_object(_tree.OBJECT, _tree.MEDIA_TYPE, tree)
        if gathered.versions:
            gathered.state.add_object(_versions.OBJECT, _tree.MEDIA_TYPE, _tree.dump(gathered.versions))
    if gathered.rank_values:
        values = _tree.dump(gathered.rank_values)
        gathered.state.add_object(_tree.rank_object(communicator.rank), _tree.MEDIA_TYPE, values)
    return gathered


def _gather(
    gather: Gather[G], communicator: Call, options: StoreOptions, use_aliases: bool
) -> tuple[G, bytes, list[bytes], int]:
    """What gather() returns, its tree, the digests of all ranks' trees, and the flags that some rank set."""

    def make() -> tuple[tuple[G, bytes], bytes]:
        gathered = gather(FirstNames(use_aliases))
        frozen = options.frozen_among({slot.name for slot in gathered.slots})
        gathered.state = _sealpoint.RankState(gathered.slots, options.encoding, frozen)
        own = _tree.dump(gathered.node)
        digest = hashlib.blake2b(own + _tree.dump(gathered.versions), digest_size=16).digest()
        flags = (_HAS_ALIASES if gathered.names.found > 0 else 0) | (_MAY_DIFFER if gathered.of_first_rank else 0)
        return (gathered, own), bytes([flags]) + digest

    (gathered, own), answers = agree(communicator, make, "compared what they save")
    return gathered, own, [one[1:] for one in answers], functools.reduce(operator.or_, (one[0] for one in answers))


def _leave_to_first_rank(gathered: Gathered, communicator: Call, options: StoreOptions) -> None:
    """Leaves tensors that may differ by rank to the first rank that has them, of those that write. Collective."""
    writers = getattr(options, "writer_ranks", ())
    left = _first_rank.names_of_others(gathered.of_first_rank, communicator, writers)
    gathered.slots = [slot for slot in gathered.slots if slot.name not in left]
    frozen = options.frozen_among({slot.name for slot in gathered.slots})
    gathered.state = _sealpoint.RankState(gathered.slots, options.encoding, frozen)


def _unite(answers: list[bytes], communicator: Call, collected: Gathered) -> None:
    """Makes one tree on rank 0, of one of each kind that there is. Errors: InvalidArgumentError, the same on all ranks."""
    is_first = answers.index(answers[communicator.rank]) == communicator.rank
    own = _tree.dump([collected.node, collected.versions]) if is_first else b""
    gathered = communicator.gather(own, 0, "united what they save")
    outcome = b""
    if gathered is not None:
        try:
            pairs = [(rank, _tree.parse(bytes(one))) for rank, one in enumerate(gathered) if len(one) > 0]
            collected.node = _tree.merge([(rank, node) for rank, (node, _) in pairs])
            for _, (_, versions) in pairs:
                for path, found in versions.items():
                    collected.versions[path] = found | collected.versions.get(path, {})
        except Error as failed:
            outcome = dump_error(failed, communicator.rank, communicator.host)
    received = communicator.broadcast(outcome if communicator.rank == 0 else None, 0, "united what they save")
    if communicator.rank != 0:
        assert received is not None
        outcome = bytes(received)
    if outcome:
        raise parse_error(outcome)


class Matching:
    """A state dict beside the tree of a checkpoint: which tensors are read where, and the values, set at the end.

    Nothing of the state changes before ``apply``.
    """

    def __init__(self, tree: Node, rank_values: Mapping[str, Node], rank: int, size: int, contract: Contract,
                 allow_pickle: bool, look: _optimizers.Look, versions: _versions.Versions,
                 of_all_ranks: Sequence[Mapping[str, Node]] | None = None) -> None:
        self.destinations = Destinations()
        self.findings: list[tuple[str, str, str]] = []  # (kind, path, detail)
        self.forbidden: list[Difference] = []  # by the contract
        self.matched: set[str] = set()  # paths of stored places that this rank's state has
        self.stored: list[str] = []  # all of them
        self._contract, self._rank, self._size = contract, rank, size
        self._rank_values, self._of_all_ranks = rank_values, of_all_ranks
        self._new_tensors = _tree.Decoder(self._new_tensor, allow_pickle)
        self._decoder = _tree.Decoder(self._refuse_tensor, allow_pickle)
        self._changes: list[Callable[[], None]] = []  # in this order, at the end
        self._loads: list[tuple[Any, Any]] = []  # (object with a state, its state dict)
        self._copies = _optimizers.Copies()
        self._look, self._versions = look, versions
        self._tree = tree

    def match(self, state: Any) -> None:
        """Errors: InvalidArgumentError (a state that cannot be filled in place)."""
        self.stored = list(_leaves(self._tree, ()))
        if not (is_stateful(state) or isinstance(state, (MutableMapping, list))) or _shards.is_tensor(state):
            raise InvalidArgumentError(
                f"state is of type {type(state).__name__}, expected a mapping, a list or an object with state_dict() and "
                "load_state_dict(), which are filled in place; load_full() returns what was saved"
            )
        if isinstance(state, list) and not isinstance(self._tree, list):
            self._mark_matched(self._tree, ())
            return self._differ("kind", (), f"the state is a list, the checkpoint {_tree.brief(self._tree)}")
        self._place(partial(operator.setitem, state, slice(None)), state, self._tree, ())  # of a list; others change within

    def apply(self) -> None:
        self.destinations.mark_changed()
        for change in self._changes:
            change()
        for stateful, state in self._loads:
            stateful.load_state_dict(state)
        for path in self._copies.changed():
            warnings.warn(
                f"the hyper-parameters of {path} were loaded into a copy, as which state_dict() returns them: call the "
                f"optimizer's load_state_dict() with it, or give the optimizer itself in the state",
                RuntimeWarning, stacklevel=7,
            )

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
        for key in list(live):
            place = (*path, _tree.part_of(key))
            name = str(key) if type(key) is int and key not in stored else key  # all keys of DCP are strings
            found = stored[name] if name in stored else find(stored, str(key))
            if found is not None or name in stored:
                self._place(partial(operator.setitem, live, key), live[key], found, place)
            else:
                for one in _live_leaves(live[key], place):
                    self._differ("missing", one, "the checkpoint does not have it")

    def _place(self, put: Put, live: Any, node: Node, path: Path) -> None:
        """Matches what the state has at one place with its node. ``put``: what sets another value there."""
        if is_stateful(live) and not _shards.is_tensor(live):
            node, why = _parameters.by_names(live, node)
            wrong = why or next(_parameters.misfits(live, node, lambda name: self._look(name)[0]), None)
            if wrong is not None:
                self._mark_matched(node, path)
                self.forbidden.append(("optimizer", text_of(path), wrong))
                return
            state = self._state_of(live, node, path)
            self._mapping(state, node, path)
            self._loads.append((live, state))
        elif _shards.is_tensor(live):
            self._tensor(live, node, path)
        elif isinstance(live, MutableMapping):
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
            self._changes.append(partial(put, self._value(node, path)))

    def _state_of(self, value: Any, node: Node, path: Path) -> Any:
        """As ``plain_state``, with places for what is stored of optimizers, also of those within the state of an object, and with
        the stored versions of modules."""
        if is_stateful(value):
            return _optimizers.complete(value, self._state_of(value.state_dict(), node, path), node, self._look)
        if isinstance(value, Mapping):
            stored = entries_of(node) or {}
            made = {key: self._state_of(one, stored.get(key), (*path, _tree.part_of(key))) for key, one in value.items()}
            live = _versions.of(value)
            return made if live is None else _versions.attached(made, self._versions.get(text_of(path)), live)
        if type(value) in (list, tuple):
            items = node.get("items") if kind_of(node) == "tuple" else node if isinstance(node, list) else None
            nodes = items if items is not None and len(items) == len(value) else [None] * len(value)
            pairs = zip(value, nodes, strict=True)
            return type(value)(self._state_of(one, inner, (*path, i)) for i, (one, inner) in enumerate(pairs))
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

    def _sequence(self, put: Put, live: Any, node: Node, path: Path) -> None:
        items = node if isinstance(node, list) else node["items"] if kind_of(node) == "tuple" else None
        if not isinstance(live, (list, tuple)) or items is None or len(items) != len(live):
            self._mark_matched(node, path)
            count = f"{len(live)} elements" if isinstance(live, (list, tuple)) else f"a value of type {type(live).__name__}"
            stored = f"{len(items)} elements" if items is not None else _tree.brief(node)
            return self._differ("kind", path, f"the state has {count}, the checkpoint {stored}")
        filled = live if isinstance(live, list) else list(live)
        for i, (one, stored_one) in enumerate(zip(live, items, strict=True)):
            self._place(partial(operator.setitem, filled, i), one, stored_one, (*path, i))
        if isinstance(live, tuple):
            self._changes.append(lambda: put(tuple(filled)))

    @staticmethod
    def _stored_of(values: Mapping[str, Node], path: Path, rank: int) -> Node:
        if text_of(path) not in values:
            raise CorruptError(f"the object of rank {rank} lacks a value", object=text_of(path))
        return values[text_of(path)]

    def _new_tensor(self, name: str) -> torch.Tensor:
        shape, dtype = self._look(name)
        made = torch.empty(shape, dtype=dtype)
        self.destinations.add(made, name)
        return made

    def _rank_value(self, put: Put, live: Any, node: Node, path: Path) -> None:
        self._mark_matched(node, path)
        if kind_of(node) != "per_rank":
            return self._differ("kind", path, f"the state has a per_rank, the checkpoint {_tree.brief(node)}")
        if self._of_all_ranks is not None:
            values = [self._new_tensors.decode(self._stored_of(one, path, rank))
                      for rank, one in enumerate(self._of_all_ranks[: node["size"]])]
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
    """The places of a list or tuple that count one by one, since mappings, tensors or values of each rank are among them;
    None: they do not."""
    items = node if isinstance(node, list) else node.get("items") if kind_of(node) == "tuple" else None
    if items is None or not any(
        entries_of(one) is not None or kind_of(one) in ("tensor", "per_rank") or _items(one) for one in items
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
    for key, value in entries.items():
        yield from _leaves(value, (*path, _tree.part_of(key)))


def _live_leaves(value: Any, path: Path) -> Iterator[Path]:
    """As ``_leaves``, of a state."""
    state = plain_state(value) if is_stateful(value) and not _shards.is_tensor(value) else value
    entries = state.items() if isinstance(state, Mapping) else enumerate(state) if _is_nested(state) else ()
    if not entries:
        yield path
    for key, one in entries:
        yield from _live_leaves(one, (*path, _tree.part_of(key)))


def _is_nested(value: Any) -> bool:
    """Whether a list or tuple has mappings, tensors, values of each rank or objects with a state."""
    return isinstance(value, (list, tuple)) and any(
        isinstance(one, (Mapping, _tree.PerRank)) or _shards.is_tensor(one) or is_stateful(one) or _is_nested(one)
        for one in value
    )
