# SPDX-License-Identifier: Apache-2.0
"""Publishes versions of weights from all ranks of a trainer."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import Path, Provenance, path_of
from sealpoint._errors import Error, IncompleteError, InvalidArgumentError, NotFoundError, UncommittedError
from sealpoint._keywords import names_of, refuse_unknown
from sealpoint._ranks import saves
from sealpoint._ranks.call import Call
from sealpoint._rules import is_integer
from sealpoint._series import Series
from sealpoint.torch import _lineage
from sealpoint.torch._aliases import FirstNames
from sealpoint.torch._arguments import check, checked_call
from sealpoint.torch._options import CheckpointerKeywords, SaveOptions
from sealpoint.torch._save import session_for
from sealpoint.torch._session import errors_of_all, session_of
from sealpoint.torch._shards import memory_of
from sealpoint.torch._state import Collected, Gathered, gather_agreed

_log = logging.getLogger("sealpoint")
_FULL_EVERY_MAX = 65  # a chain has at most 64 deltas
# After a delta of more bytes than this, and than this part of a full version, a full one follows.
_WORTH_BYTES, _WORTH = 1 << 20, 0.5
# Options of saves that versions of weights do not have.
_NOT_OURS = {"staged", "keep_local", "unpromoted_max", "unpromoted_wait", "promote_memory_bytes", "background_deadline", "frozen",
             "full_every"}  # fmt: skip


class Published(NamedTuple):
    """A version that was published.

    Attributes:
        version: The number that ``publish`` got.
        attempt: Id of its checkpoint, 32 hexadecimal digits.
        directory: Directory of its checkpoint.
        base: Version to which it is a delta. None: it is a full version.
        bytes_written: Size of its files, of all ranks.
        bytes_total: Size of all tensors and objects.
        seconds: Duration of the call on this rank.
    """

    version: int
    attempt: str
    directory: str
    base: int | None
    bytes_written: int
    bytes_total: int
    seconds: float


class _HostBytes:
    """The bytes of the last version that this rank published, in host memory."""

    def __init__(self, state: _sealpoint.RankState, has_memory: list[bool], tensors: list[torch.Tensor]) -> None:
        self.declaration = state.declaration_digest()
        self._copies = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda) for tensor in tensors]
        views = iter(map(memory_of, self._copies))
        self.state = state.in_memory([next(views) if has else None for has in has_memory])

    def take(self, tensors: list[torch.Tensor]) -> None:
        for copy, tensor in zip(self._copies, tensors, strict=True):
            copy.copy_(tensor, non_blocking=tensor.is_cuda)
        for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
            torch.cuda.synchronize(device)


class _Held(NamedTuple):
    """What this rank publishes."""

    gathered: Gathered
    has_memory: list[bool]  # of each slot
    tensors: list[torch.Tensor]  # memory of the slots that have some


class Publisher:
    """Publishes versions of weights to one place: a full version first and after every ``full_every``, else deltas.

    Collective: all ranks of the trainer call all methods, in the same order. A version exists for followers when the call returns,
    and not before. Each version is whole: a delta names its base by id and digest. If a version fails, it does not exist, and the
    next one is full.

    Between two calls each rank keeps the bytes of its part of the last version in host memory.

    Args:
        place: Directory or URL of the series of versions, created if missing.
        full_every: Number of versions of which one is full, 1 to 65. 1: all are full, and no bytes are kept in host memory.
            A full version also follows if names, dtypes, shapes or the layout changed, if the last version is gone, and if the last
            delta was larger than half a full version.
        keep: Number of versions to keep, counted from the newest, and the versions to which they are deltas. At least 2. None:
            keep all.
        process_group, no_dist, options: As for ``sealpoint.torch.save``. ``fingerprints`` is on by default.

    A new Publisher, as in a restarted trainer, continues the series with a full version. If two publishers publish to one place,
    the one that finds a version that is not its own raises AlreadyExistsError, and publishes nothing.

    Raises:
        InvalidArgumentError: an argument is invalid.
        TypeError: an option is unknown.

    Examples:
        >>> import torch
        >>> from sealpoint.weights import Publisher
        >>> policy = torch.nn.Linear(4, 4)
        >>> publisher = Publisher("weights", full_every=10, keep=5)
        >>> publisher.publish(policy.state_dict(), 1).base is None
        True
    """

    def __init__(
        self, place: Path, *, full_every: int = 10, keep: int | None = None, process_group: dist.ProcessGroup | None = None,
        no_dist: bool = False, **options: Any,
    ) -> None:
        with errors_of_all("Publisher", process_group):
            known = [name for name in names_of(CheckpointerKeywords) if name not in _NOT_OURS]
            refuse_unknown("Publisher", options, ["full_every", "keep", "process_group", "no_dist", *known])
            check(directory=place, keep=keep, process_group=process_group, no_dist=no_dist, **options)
            if not is_integer(full_every) or not 1 <= full_every <= _FULL_EVERY_MAX:
                raise InvalidArgumentError(f"full_every is {full_every!r}, expected an integer of 1 to {_FULL_EVERY_MAX}")
        self._place, self._full_every, self._keep = path_of(place, "place"), full_every, keep
        self._group, self._no_dist, self._options = process_group, no_dist, {"fingerprints": True, **options}
        self._lineage = _lineage.Lineage()
        self._bytes: _HostBytes | None = None
        self._last: Published | None = None  # None: the next version is full
        self._depth = 0  # deltas from the last full version to the last version
        self._full_bytes = 0  # size of the last full version

    def publish(self, state_dict: Any, version: int, *, provenance: Provenance | None = None) -> Published:
        """Publishes a version. It is durable when the call returns. Collective: all ranks call it.

        Args:
            state_dict: As for ``sealpoint.torch.save``, with tensors in any layout; or a sharded state dict of Megatron-core.
            version: Number of the version, such as the training step. Numbers should increase; the newest version is the one
                that was published last.
            provenance: As for ``sealpoint.torch.save``.

        Raises:
            AlreadyExistsError: another publisher published to this place since the last version of this one.
            Error: as for ``sealpoint.torch.save``.

        Errors are the same on all ranks. After an error the version does not exist, unless ``unknown_outcome`` is true.
        """
        began = time.monotonic()
        given = provenance if provenance is not None else self._options.get("provenance")
        own = {**_lineage.provenance(), **given} if isinstance(given, Mapping) else given or _lineage.provenance()
        options = SaveOptions(**{**self._options, "provenance": own}, series=True, step=version, process_group=self._group,
                              no_dist=self._no_dist)  # fmt: skip
        try:
            try:
                return self._publish(state_dict, options, began)
            except (IncompleteError, InvalidArgumentError, NotFoundError, UncommittedError):
                if self._last is None:
                    raise
                self._last = None  # the base is gone, or none for this state
                return self._publish(state_dict, options, began)
        except Error as error:
            self._last = None
            self._lineage.note_error(error)
            raise

    def _publish(self, state_dict: Any, options: SaveOptions, began: float) -> Published:
        session = session_for(options)
        with checked_call(session, "publish", self._place, options) as call:
            held = self._gather(state_dict, call, options)
            base = self._agree_on_base(call, held.gathered.state)
            last = self._last if base is not None else None
            info = saves.save(session, held.gathered, self._place, options, base)
        self._lineage.note(info)
        if self._full_every > 1:
            self._keep_bytes(held)
        self._depth = 0 if last is None else self._depth + 1
        self._full_bytes = info.total_bytes if last is None else self._full_bytes
        self._last = Published(-1 if info.step is None else info.step, info.attempt, info.directory,
                               None if last is None else last.version, info.total_bytes, info.raw_bytes,
                               time.monotonic() - began)  # fmt: skip
        self._prune()
        return self._last

    def _gather(self, state_dict: Any, call: Call, options: SaveOptions) -> _Held:
        described: list[tuple[str, bool, torch.Tensor | None]] = []  # each slot's name, and its memory

        def gather(names: FirstNames) -> Gathered:
            if call.rank == 0:
                self._lineage.check(self._place)
            gathered = _gathered(state_dict, call, options, names)
            tensors: Iterator[torch.Tensor] = iter(gathered.kept)
            described[:] = [(slot.name, 0 not in slot.shape, next(tensors) if 0 not in slot.shape else None)
                            for slot in gathered.slots]  # fmt: skip
            return gathered

        gathered = gather_agreed(gather, call, options)
        left = {slot.name for slot in gathered.slots}  # other ranks store the others
        own = [(has, tensor) for name, has, tensor in described if name in left]
        return _Held(gathered, [has for has, _ in own], [tensor for _, tensor in own if tensor is not None])

    def _agree_on_base(self, call: Call, state: _sealpoint.RankState) -> tuple[str, _sealpoint.RankState] | None:
        """Returns the base of a delta, with its bytes on this rank, or None for a full version. The same on all ranks."""
        has_bytes = self._bytes is not None and self._bytes.declaration == state.declaration_digest()
        is_due = self._depth + 1 >= self._full_every
        worth = max(_WORTH_BYTES, int(_WORTH * self._full_bytes))
        is_worth = self._depth == 0 or (self._last is not None and self._last.bytes_written <= worth)
        can = self._last is not None and has_bytes and not is_due and is_worth
        directory = self._last.directory if self._last is not None and can else ""
        _, answers = call.agree(lambda: (None, directory.encode()), "agreed on the base of the version")
        if not all(answers) or self._bytes is None:
            return None
        return answers[0].decode(), self._bytes.state

    @torch.no_grad()
    def _keep_bytes(self, held: _Held) -> None:
        state = held.gathered.state
        if self._bytes is None or self._bytes.declaration != state.declaration_digest():
            self._bytes = None  # before the memory of the next
            self._bytes = _HostBytes(state, held.has_memory, held.tensors)
        self._bytes.take(held.tensors)

    def _prune(self) -> None:
        """Deletes old versions, on rank 0. Errors are only logged, and the next version tries the deletion again."""
        if self._keep is None or session_of(self._group, is_alone=self._no_dist).rank != 0:
            return
        try:
            Series(self._place).prune(keep_last=self._keep)
        except Error as error:
            _log.warning("old versions were not deleted: %s", error)

    def __repr__(self) -> str:
        return f"<sealpoint.weights.Publisher {self._place!r}: full_every={self._full_every}, keep={self._keep}>"


def _gathered(state: Any, call: Call, options: SaveOptions, names: FirstNames) -> Gathered:
    """Returns the state of this rank, with a description of its own: that of the preceding save has no tensors."""
    if "megatron.core.dist_checkpointing" in sys.modules:
        from sealpoint.megatron import _weights

        if _weights.is_sharded(state):
            return _weights.gathered(_weights.sharded_part(state), call.rank, call.size, options, names)
    return Collected(state, call.rank, call.size, options, names, {})


# With the options of the first call.
_publishers: dict[tuple[str, Any], tuple[Publisher, dict[str, Any]]] = {}


def publish(
    state_dict: Any, place: Path, version: int, *, process_group: dist.ProcessGroup | None = None, **options: Any
) -> Published:
    """Publishes a version with the Publisher of this place, which the first call creates. Collective: all ranks call it.

    Args:
        state_dict, version: As for ``Publisher.publish``.
        place, process_group, options: As for ``Publisher``. All calls for a place pass the same options.

    Raises the errors of ``Publisher`` and ``Publisher.publish``, and InvalidArgumentError if the options differ from those of the
    first call for this place.

    Examples:
        >>> import torch
        >>> from sealpoint.weights import publish
        >>> policy = torch.nn.Linear(4, 4)
        >>> publish(policy.state_dict(), "weights", 1).version
        1
    """
    with errors_of_all("publish", process_group):
        key = (_paths.absolute(path_of(place, "place")), process_group)
        _, first = _publishers.get(key, (None, options))
        if options != first:
            raise InvalidArgumentError(
                f"the options are {options}, and those of the first call for this place were {first}; "
                "pass the same options, or use a Publisher"
            )
    if key not in _publishers:
        _publishers[key] = Publisher(place, process_group=process_group, **options), options
    return _publishers[key][0].publish(state_dict, version)
