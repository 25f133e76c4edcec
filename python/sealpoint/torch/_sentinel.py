# SPDX-License-Identifier: Apache-2.0
"""Detection of silent data corruption in a training state."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
import torch.distributed as dist

from sealpoint import _sealpoint
from sealpoint._errors import InvalidArgumentError
from sealpoint._ranks.arguments import COUNT
from sealpoint._ranks.call import Call
from sealpoint._ranks.session import Session
from sealpoint._rules import is_integer
from sealpoint.torch import _shards
from sealpoint.torch._aliases import FirstNames
from sealpoint.torch._arguments import check
from sealpoint.torch._fingerprint import differing
from sealpoint.torch._first_rank import buffers_of
from sealpoint.torch._options import SaveOptions
from sealpoint.torch._session import check_is_not_one_of_many, errors_of_all, session_of
from sealpoint.torch._state import Collected, agree

_log = logging.getLogger("sealpoint")
_VALUE_BYTES = 16  # size of a fingerprint
_BLOCK_ELEMENTS = 1 << 18  # number of elements of a master that are cast together
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by element size
_HAS_NEW_LAYOUT, _HAS_FOUND = 1, 2
Kind = Literal["changed_between_steps", "replicas_differ", "cast_differs"]
# Name, dtype, shape, region.
_Key = tuple[str, str, tuple[int, ...], str]
# Kind, tensor, ranks, detail; as sent to other ranks.
_Found = tuple[Kind, str, list[int], str]


class SentinelFinding(NamedTuple):
    """A tensor with elements that a ``Sentinel`` found to be wrong. The finding is the same on all ranks."""

    kind: Kind
    step: int
    tensor: str
    ranks: tuple[int, ...]  # ranks in the process group, ascending
    hosts: tuple[str, ...]  # one per rank
    text: str


class _Held(Collected):
    """The tensors that this rank holds."""

    def __init__(self, state: Any, call: Call, exclude: Sequence[str]) -> None:
        self.values: dict[str, Any] = {}
        super().__init__(state, call.rank, call.size, SaveOptions(), FirstNames(True, is_by_name=True), {})
        buffers = set(buffers_of(state, torch.nn.Module))
        self.values = {
            name: value
            for name, value in self.values.items()
            if name not in buffers and not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude)
        }

    def _add_tensor(self, path: str, value: Any) -> str:
        name = super()._add_tensor(path, value)
        if not self.encoder.is_per_rank:
            self.values.setdefault(name, value)
        return name

    def fingerprints(self) -> tuple[list[_Key], bytes]:
        """Returns the parts in ascending order, and the fingerprint of each."""
        slots = [slot for slot in self.slots if slot.name in self.values]
        found = sorted(
            ((slot.name, slot.dtype, tuple(slot.shape), part.region), bytes.fromhex(str(part.fingerprint).partition(":")[2]))
            for slot, part in zip(slots, _sealpoint.part_fingerprints(slots), strict=True)
        )
        return [key for key, _ in found], b"".join(value for _, value in found)


class _Layout(NamedTuple):
    """Facts about the parts, which stay valid until names or regions change."""

    keys: list[_Key]
    replicas: dict[tuple[int, ...], list[int]]  # numbers of replicated parts, by the ranks that hold them
    hosts: list[str]  # of all ranks
    has_partners: bool  # some rank has a replica or a pair


class _Checked(NamedTuple):
    step: int
    values: bytes  # fingerprints of the parts


def _value(values: bytes, number: int) -> bytes:
    return values[_VALUE_BYTES * number : _VALUE_BYTES * (number + 1)]


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_VALUE_BYTES).digest()


def _digests_of(layout: _Layout, values: bytes) -> dict[tuple[int, ...], bytes]:
    """Returns, for each set of ranks with replicas, the number of ranks and the digest of their common parts."""
    return {
        ranks: len(ranks).to_bytes(4, "little")
        + _digest(repr(ranks).encode() + b"".join(_value(values, number) for number in numbers))
        for ranks, numbers in layout.replicas.items()
    }


def _unequal(answers: list[bytes]) -> set[bytes]:
    """Returns the digests on which the ranks of a set disagree."""
    size = 4 + _VALUE_BYTES
    counts = Counter(answer[at : at + size] for answer in answers for at in range(0, len(answer), size))
    return {digest for digest, count in counts.items() if count != int.from_bytes(digest[:4], "little")}


def _wrong_ranks(values: dict[int, bytes]) -> list[int]:
    """Returns the ranks that do not have the most frequent value. If several values are equally frequent, returns all ranks."""
    (most, count), *others = Counter(values.values()).most_common()
    if others[0][1] == count:
        return sorted(values)
    return sorted(rank for rank, value in values.items() if value != most)


def _common(copy: _shards.Part, master: _shards.Part, shape: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Returns the elements that both parts contain, or None if the parts do not overlap."""
    first, second = _shards.plain_memory(copy.memory), _shards.plain_memory(master.memory)
    if copy.run is not None or master.run is not None:
        if copy[::2] != master[::2]:
            raise InvalidArgumentError("the copy and its master have different runs of elements, expected the same")
        return first, second
    whole = ((0,) * len(shape), tuple(shape))
    boxes = zip(*(copy.box or whole), *(master.box or whole), strict=True)
    for dim, (begin, extent, other_begin, other_extent) in enumerate(boxes):
        low, high = max(begin, other_begin), min(begin + extent, other_begin + other_extent)
        if low >= high:
            return None
        first, second = first.narrow(dim, low - begin, high - low), second.narrow(dim, low - other_begin, high - low)
    return first, second


def _count_differing(copy: torch.Tensor, master: torch.Tensor) -> int:
    """Returns the number of elements of the copy that differ in some bit from the cast master."""
    if copy.dim() == 0:
        copy, master = copy.reshape(1), master.reshape(1)
    rows = max(1, _BLOCK_ELEMENTS * len(copy) // max(1, copy.numel()))
    bits, count = _BITS[copy.element_size()], 0
    for at in range(0, len(copy), rows):
        held, cast = copy[at : at + rows], master[at : at + rows].to(copy.dtype)
        count += int(torch.count_nonzero(held.contiguous().view(bits) != cast.contiguous().view(bits)))
    return count


class Sentinel:
    """Detects silent data corruption: elements of a training state that changed although no operation changed them.

        sentinel = Sentinel({"model": model, "optimizer": optimizer}, every=10)
        for step in range(1, last + 1):
            loss(model).backward()
            sentinel.before_optimizer(step)
            optimizer.step()
            sentinel.end_of_step(step)

    In each step that is a multiple of ``every``, the sentinel compares

    - parameters and optimizer state after this step with their values before the next optimizer step ("changed_between_steps"),
    - parts that several ranks hold, such as data-parallel replicas ("replicas_differ"), and
    - low-precision copies with the cast of their masters ("cast_differs").

    The sentinel reads the state twice per checked step, and keeps 16 bytes per part. If names, shapes or placements change, for
    example in the first step of an optimizer, the comparison starts again. Buffers of modules are not compared, because a forward
    pass may change them. ``per_rank`` values are not compared either. Collective: all ranks call all methods, in the same order.

    Args:
        state: As for ``save``; pass objects or live tensors. Optimizer state is named after the parameters of the modules in the
            state. The states of different pipeline stages therefore have different names.
        every: Number of steps between checks.
        on_finding: Called on all ranks with each ``SentinelFinding``. If the function raises an exception on a rank, all ranks
            raise an error that names this rank. By default, the text is logged as an error ("sealpoint").
        process_group: Ranks that hold the state together. Default: all ranks.
        no_dist: Use only the state of this process. Other processes do not make the calls.
        paired: Maps the names of low-precision copies to the names of their masters. A function may be passed instead, which
            returns the name of the master for a name, or None. After the optimizer step, each copy must be equal to the cast of its
            master, bit by bit (no stochastic rounding).
        exclude: Patterns of names of tensors that are not compared (``*`` matches any characters).

    Attributes:
        findings: All ``SentinelFinding``, oldest first.

    Raises:
        InvalidArgumentError: an argument is invalid, or a check finds no tensor with a name in ``paired`` on any rank.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> model = torch.nn.Linear(4, 4)
        >>> sentinel = sp.Sentinel({"model": model}, on_finding=lambda found: print(found.kind, found.tensor, found.ranks))
        >>> sentinel.end_of_step(1)
        >>> model.weight.data.view(torch.int32)[2, 1] ^= 1 << 20
        >>> sentinel.before_optimizer(2)
        changed_between_steps model.weight (0,)
        >>> sentinel.provenance()
        {'sdc.state': 'found'}
    """

    def __init__(
        self,
        state: Any,
        *,
        every: int = 1,
        on_finding: Callable[[SentinelFinding], object] | None = None,
        process_group: dist.ProcessGroup | None = None,
        no_dist: bool = False,
        paired: Mapping[str, str] | Callable[[str], str | None] | None = None,
        exclude: Sequence[str] = (),
    ) -> None:
        with contextlib.nullcontext() if no_dist is True else errors_of_all("Sentinel", process_group):
            COUNT.check("every", every)
            check(on_finding=on_finding, process_group=process_group, no_dist=no_dist, paired=paired, exclude=exclude)
            if not no_dist:
                check_is_not_one_of_many(process_group)
        self.findings: list[SentinelFinding] = []
        self._state, self._every, self._exclude, self._paired = state, every, tuple(exclude), paired
        self._group, self._no_dist = process_group, no_dist
        self._on_finding = on_finding or (lambda found: _log.error("%s", found.text))
        self._layout: _Layout | None = None
        self._checked: _Checked | None = None  # fingerprints after the last step, if it was checked
        self._upto: int | None = None

    def end_of_step(self, step: int) -> None:
        """Compares replicas and pairs after the optimizer step, and keeps the fingerprints. Collective if the step is due.

        Call this method after everything that changes the state in this step, such as schedulers and averages of weights.

        Raises communication errors and the errors of ``on_finding`` on all ranks.
        """
        self._checked = None
        if self._every > 1 and is_integer(step) and step % self._every != 0:
            return
        with self._session().call("Sentinel.end_of_step", step=step) as call:
            (held, keys, values, own), answers = agree(call, lambda: self._look(call, step), "compared their replicas")
            flags = [answer[0] for answer in answers]
            answers = [answer[1:] for answer in answers]
            if any(flag & _HAS_NEW_LAYOUT for flag in flags):
                self._layout = None
                self._layout = self._agree_on_layout(call, held, keys)
                own_digests = b"".join(_digests_of(self._layout, values).values())
                answers = [bytes(answer) for answer in call.all_gather(own_digests, "compared their replicas")]
            assert self._layout is not None
            unequal = _unequal(answers)
            if unequal:
                own += self._find_replicas(call, self._layout, values, unequal)
            if unequal or any(flag & _HAS_FOUND for flag in flags):
                _, messages = agree(call, lambda: (None, json.dumps(own).encode()), "told each other their findings")
                self._report(call, step, messages)
        if self._layout.has_partners and not self.findings:
            self._upto = step
        self._checked = _Checked(step, values)

    def before_optimizer(self, step: int) -> None:
        """Compares the state with the state after the preceding step. Does nothing if the preceding step was not checked.

        Call this method after the backward pass, before anything changes parameters or optimizer state. Collective if the preceding
        step was due. Raises the errors of ``end_of_step``.
        """
        checked, self._checked = self._checked, None
        if checked is None:
            return
        with self._session().call("Sentinel.before_optimizer", step=step) as call:
            _, messages = agree(call, lambda: (None, json.dumps(self._changes(call, checked)).encode()),
                                "compared the state with that of the preceding step")  # fmt: skip
            if any(message not in (b"[]", b"null") for message in messages):
                self._report(call, checked.step, messages)
        if not self.findings and b"null" not in messages:
            self._upto = checked.step

    def provenance(self) -> dict[str, str]:
        """Returns entries for ``provenance=`` of a save: ``sdc.state``, and ``sdc.upto`` if a step was compared. Local.

        ``sdc.state`` is "unchecked", "checked", or "found" if there was a finding. ``sdc.upto`` is the last step up to which no
        comparison found a difference.
        """
        if self.findings:
            state = "found"
        else:
            state = "unchecked" if self._upto is None else "checked"
        return {"sdc.state": state} | ({} if self._upto is None else {"sdc.upto": str(self._upto)})

    def __repr__(self) -> str:
        return f"<sealpoint.torch.Sentinel: every={self._every}, {len(self.findings)} findings>"

    def _session(self) -> Session:
        return session_of(self._group, is_alone=self._no_dist)

    def _look(self, call: Call, step: Any) -> tuple[tuple[_Held, list[_Key], bytes, list[_Found]], bytes]:
        if not is_integer(step):
            raise InvalidArgumentError(f"step is {step!r}, expected an integer")
        held = _Held(self._state, call, self._exclude)
        keys, values = held.fingerprints()
        found = list(self._find_casts(call, held))
        layout = self._layout
        is_new = layout is None or layout.keys != keys
        digests = b"" if layout is None or is_new else b"".join(_digests_of(layout, values).values())
        return (held, keys, values, found), bytes([is_new * _HAS_NEW_LAYOUT | bool(found) * _HAS_FOUND]) + digests

    def _agree_on_layout(self, call: Call, held: _Held, keys: list[_Key]) -> _Layout:
        """Finds the ranks that hold each part. Collective: exchanges about 32 bytes per part and rank."""
        digests = [_digest(repr(key).encode()).hex() for key in keys]
        named = {name for pair in self._paired.items() for name in pair} if isinstance(self._paired, Mapping) else set()
        absent, has_pairs = sorted(named - held.values.keys()), any(True for _ in self._pairs(held))
        _, answers = agree(call, lambda: (None, json.dumps([digests, call.host, absent, has_pairs]).encode()),
                           "found their replicas")  # fmt: skip
        of_ranks = [json.loads(answer) for answer in answers]
        absent_everywhere = set.intersection(*(set(absent) for _, _, absent, _ in of_ranks))
        if absent_everywhere:
            raise InvalidArgumentError("paired has this name, and no rank has a tensor of this name", tensor=min(absent_everywhere))
        holders: dict[str, list[int]] = {}
        for rank, (theirs, *_) in enumerate(of_ranks):
            for digest in dict.fromkeys(theirs):
                holders.setdefault(digest, []).append(rank)
        replicas: dict[tuple[int, ...], list[int]] = {}
        for number, digest in enumerate(digests):
            if len(holders[digest]) > 1:
                replicas.setdefault(tuple(holders[digest]), []).append(number)
        has_partners = any(len(ranks) > 1 for ranks in holders.values()) or any(has for *_, has in of_ranks)
        return _Layout(keys, replicas, [host for _, host, *_ in of_ranks], has_partners)

    def _find_replicas(self, call: Call, layout: _Layout, values: bytes, unequal: set[bytes]) -> list[_Found]:
        """Returns differing replicas, on the first rank that holds them. Collective: exchanges 32 bytes per replica."""
        sets = [ranks for ranks, digest in _digests_of(layout, values).items() if digest in unequal]
        own = {repr(ranks): b"".join(_value(values, number) for number in layout.replicas[ranks]).hex() for ranks in sets}
        _, answers = agree(call, lambda: (None, json.dumps(own).encode()), "looked for the replicas that differ")
        found: list[_Found] = []
        for ranks in (ranks for ranks in sets if ranks[0] == call.rank):
            theirs = {rank: bytes.fromhex(json.loads(answers[rank])[repr(ranks)]) for rank in ranks}
            for at, number in enumerate(layout.replicas[ranks]):
                held = {rank: _value(theirs[rank], at) for rank in ranks}
                if len(set(held.values())) > 1:
                    name, _, _, region = layout.keys[number]
                    text = differing(region, [(rank, value.hex()) for rank, value in held.items()])
                    found.append(("replicas_differ", name, _wrong_ranks(held), text))
        return found

    def _changes(self, call: Call, checked: _Checked) -> list[_Found] | None:
        """Returns the parts that changed since the step, or None if the layout has changed."""
        keys, values = _Held(self._state, call, self._exclude).fingerprints()
        if self._layout is None or keys != self._layout.keys:
            return None
        if values == checked.values:
            return []
        return [
            ("changed_between_steps", name, [call.rank], f"elements of {region} changed after the optimizer step")
            for number, (name, _, _, region) in enumerate(keys)
            if _value(values, number) != _value(checked.values, number)
        ]

    def _pairs(self, held: _Held) -> Iterator[tuple[str, str]]:
        """Returns (copy, master) pairs of names. This rank has both tensors of each pair."""
        paired = self._paired
        for name in held.values if paired is not None else ():
            master = paired.get(name) if isinstance(paired, Mapping) else paired(name)  # type: ignore[misc]
            if master is not None and master in held.values:
                yield name, master

    def _find_casts(self, call: Call, held: _Held) -> Iterator[_Found]:
        for name, master in self._pairs(held):
            copies, masters = (_shards.pieces_of(held.values[each], each) for each in (name, master))
            if copies.shape != masters.shape:
                raise InvalidArgumentError(
                    f"the shape is {list(copies.shape)}, that of its master {master} is {list(masters.shape)}", tensor=name
                )
            common = (_common(copy, other, copies.shape) for copy in copies.parts for other in masters.parts)
            count = sum(_count_differing(*pair) for pair in common if pair is not None)
            if count > 0:
                yield "cast_differs", name, [call.rank], f"{count} elements are not the cast of {master}"

    def _report(self, call: Call, step: int, messages: list[bytes]) -> None:
        """Passes the findings of all ranks to ``on_finding``. Collective."""
        assert self._layout is not None
        ranks_of: dict[tuple[Kind, str], set[int]] = {}
        details: dict[tuple[Kind, str], dict[str, None]] = {}
        for message in messages:
            for kind, name, ranks, detail in json.loads(message) or ():
                ranks_of.setdefault((kind, name), set()).update(ranks)
                details.setdefault((kind, name), {})[detail] = None
        found = []
        for (kind, name), ranks in sorted(ranks_of.items()):
            ordered = tuple(sorted(ranks))
            hosts = tuple(self._layout.hosts[rank] for rank in ordered)
            where = ", ".join(f"rank {rank} ({host})" for rank, host in zip(ordered, hosts, strict=True))
            text = f"{name}, step {step}, {where}: {'; '.join(details[kind, name])}"
            found.append(SentinelFinding(kind, step, name, ordered, hosts, text))
        self.findings += found

        def tell() -> tuple[None, bytes]:
            for finding in found:
                self._on_finding(finding)
            return None, b""

        agree(call, tell, "reported their findings")
