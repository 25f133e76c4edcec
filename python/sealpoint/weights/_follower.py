# SPDX-License-Identifier: Apache-2.0
"""Follows the versions of weights on the hosts of an engine. Needs no torch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import Path, check, listed, local_path_of, path_of, threads_of
from sealpoint._checkpoint import Checkpoint
from sealpoint._dtypes import numpy
from sealpoint._errors import CorruptError, InvalidArgumentError, NotFoundError, TimeoutError
from sealpoint._mapped import array_of
from sealpoint._patterns import pattern
from sealpoint._rules import is_integer, is_number
from sealpoint.fingerprint import Fingerprint, TensorFingerprint
from sealpoint.weights import _chain
from sealpoint.weights._host import Generation, Host, Mapping, Segment, StaleError, TensorPlace, layout

if TYPE_CHECKING:
    import torch

    from sealpoint._dtypes import Array

_LOOK_FIRST_SECONDS, _LOOK_MAX_SECONDS = 0.01, 0.5  # at the host's memory; the place is looked at every ``every`` seconds
_COPY_THREADS_MAX = 8


class Update(NamedTuple):
    """What an update of a Follower did.

    Attributes:
        version: Version that this process now has.
        previous: Version that this process had before, or None.
        attempt: Id of the version's checkpoint, 32 hexadecimal digits. Two publications never share it.
        chain: Versions whose checkpoints were read, oldest first. More than one if each is a delta to the one before it.
        changed: Names of the tensors that changed since ``previous``, by their fingerprints. All names if the publisher stored
            no fingerprints.
        bytes_fetched: Bytes that the leader of the host read from the place.
        bytes_total: Size of all tensors.
        seconds: Duration of the call on this process.
        is_leader: This process fetched the version.
        skipped: Newer checkpoints that are not whole, and why.
    """

    version: int
    previous: int | None
    attempt: str
    chain: list[int]
    changed: list[str]
    bytes_fetched: int
    bytes_total: int
    seconds: float
    is_leader: bool
    skipped: list[str]


class Follower:
    """The newest version of published weights, in memory that all processes of a host share.

    One process of each host fetches: the leader, which is the first that asks. It reads the shortest chain of checkpoints from the
    version in memory to the new one, into memory that nobody reads yet. Each chunk is verified there. Then all processes of the
    host can switch to the new version, each in its own call. If anything fails, every process keeps the version that it has. If the
    leader ends, the next process that asks becomes the leader.

    Each process switches when it calls ``update``. Views of the old version stay valid and unchanged as long as they exist; their
    memory is free for the next version when the last one is gone.

        follower = Follower("s3://bucket/run/weights")
        update = follower.wait()
        model.load(follower.tensors())

    If an engine has several ranks, let one of them call ``poll``, and all of them ``update`` with its result.

    Args:
        place: Directory or URL of the series to which ``publish`` publishes.
        select: Patterns (``*`` matches any characters) of tensors to hold. Default: all. Followers with other patterns have memory
            of their own.
        threads: Number of threads of the leader that read and verify. Default: as for ``sealpoint.open``.
        every: Seconds between two looks at the place, in ``wait``.
        host_folder: Folder of this host in which its processes find each other, created if missing. It has two small files, and
            must belong to this user. Default: a folder in /dev/shm.

    Raises:
        InvalidArgumentError: an argument is invalid, or other users can write to ``host_folder``.

    Examples:
        >>> import numpy, sealpoint
        >>> from sealpoint.weights import Follower
        >>> _ = sealpoint.save({"w": numpy.ones(2, "f4")}, "weights", series=True, step=1)
        >>> with Follower("weights") as follower:
        ...     print(follower.update().version, follower.tensors()["w"])
        1 [1. 1.]
    """

    def __init__(
        self, place: Path, *, select: Sequence[str] = (), threads: int | None = None, every: float = 1.0,
        host_folder: Path | None = None,
    ) -> None:
        self._select = sorted(listed("patterns", select))
        check(patterns=self._select)
        if not is_number(every) or not 0 < every < 1e9:
            raise InvalidArgumentError(f"every is {every!r}, expected seconds above 0 and below 1e9")
        self.place, self._threads, self._every = path_of(place, "place"), threads, every
        self._copy_threads = min(threads_of(threads) or _COPY_THREADS_MAX, _COPY_THREADS_MAX)
        folder = None if host_folder is None else local_path_of(host_folder, "host_folder", "its files are locked")
        self._host = Host("\0".join([_paths.absolute(self.place), *self._select]), folder)
        self._mapping: Mapping | None = None

    @property
    def version(self) -> int | None:
        """The version that this process has, or None."""
        return None if self._mapping is None else self._mapping.generation.version

    @property
    def is_leader(self) -> bool:
        """Whether this process fetches for its host."""
        return self._host.leads

    def poll(self) -> int | None:
        """Looks at the place, and returns the newest whole version if it is newer than the one that this process has, or None.

        Fetches nothing. Raises the errors of ``Series.newest``.
        """
        target = _chain.newest(self.place)
        held = self._mapping
        is_new = target is not None and (held is None or target.entry.sequence > held.generation.sequence)
        return target.version if target is not None and is_new else None

    def update(self, version: int | None = None, *, timeout: float = 600.0) -> Update | None:
        """Switches this process to another version.

        Args:
            version: Version to switch to, also an older one. None: the leader fetches the newest whole version; other processes
                take the newest in the memory of the host, and do not wait for the leader.
            timeout: Seconds to wait for the leader, if ``version`` is set and this process is not the leader.

        Returns:
            An Update, or None if there is no other version.

        Raises:
            NotFoundError: the place has no such version.
            TimeoutError: the leader did not fetch the version in time.
            CorruptError, IncompleteError: a chunk or file of the version is damaged or missing.
            IoError: the storage failed.

        After an error this process still has the version that it had.
        """
        if version is not None and not is_integer(version):
            raise InvalidArgumentError(f"version is {version!r}, expected an integer or None")
        began, pause = time.monotonic(), _LOOK_FIRST_SECONDS
        while True:
            if self._host.lead():
                self._advance(version)
            if (found := self._switch(version, began)) is not None or version in (None, self.version):
                return found
            if time.monotonic() > began + timeout:
                raise TimeoutError(f"the leader of this host did not fetch version {version} within {timeout:.4g} s",
                                   path=self._host.folder)  # fmt: skip
            time.sleep(pause)
            pause = min(2 * pause, _LOOK_MAX_SECONDS)

    def wait(self, timeout: float | None = None) -> Update:
        """Waits for a version that is newer than the one that this process has, and switches to it.

        Raises TimeoutError, and the errors of ``update``.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while (found := self.update()) is None:
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"no newer version within {timeout:.4g} s", path=self.place)
            time.sleep(self._every if end is None else max(0.0, min(self._every, end - time.monotonic() + 0.001)))
        return found

    def _advance(self, version: int | None) -> None:
        """Fetches a version into the memory of the host, if it is not there. Called by the leader."""
        held = self._held()
        target = _chain.newest(self.place) if version is None else _chain.version_at(self.place, version)
        if target is None or any(self._is_in_memory(item, target) for item in self._host.generations()):
            return
        if version is None and held is not None and target.entry.sequence <= held.generation.sequence:
            return  # the one in memory was removed or damaged
        with _chain.opened_chain(self.place, target, None if held is None else held.generation.attempt) as (chain, is_on_held):
            self._host.announce(self._fetch(target, chain, held if is_on_held else None))

    def _is_in_memory(self, generation: Generation, target: _chain.Target) -> bool:
        try:
            return generation.attempt == target.entry.attempt and Mapping(generation) is not None
        except StaleError:
            return False

    def _held(self) -> Mapping | None:
        """Returns the newest version in memory. A new leader makes the one that it has visible again for all."""
        for generation in self._host.generations()[:1]:
            try:
                return Mapping(generation)
            except StaleError:  # its leader has ended
                break
        if self._mapping is not None:
            self._host.announce(self._mapping.visible())
        return self._mapping

    def _fetch(self, target: _chain.Target, chain: list[Checkpoint], held: Mapping | None) -> Generation:
        places, size_bytes = layout(self._tensors_of(chain[-1]))
        if held is not None and [place[:-1] for place in held.generation.tensors] != [place[:-1] for place in places]:
            held, chain = None, chain[-1:]  # other tensors; a read of the target takes what it needs of the chain
        segment = self._host.begin(size_bytes)
        try:
            fetched = self._fill(segment, places, chain, held)
        finally:
            token = segment.end()
        return Generation(
            version=target.version, attempt=str(target.entry.attempt), sequence=target.entry.sequence,
            chain=[-1 if checkpoint.step is None else checkpoint.step for checkpoint in chain], bytes_fetched=fetched,
            skipped=target.skipped, tensors=places, size_bytes=size_bytes, token=token, **segment.visible(),
        )

    def _tensors_of(self, checkpoint: Checkpoint) -> Iterable[tuple[str, str, int, tuple[int, ...], int, str]]:
        fits = [pattern(text) for text in self._select]
        for text, fit in zip(self._select, fits, strict=True):
            if not any(map(fit.fullmatch, checkpoint)):
                raise NotFoundError(f"{text!r} matches no name", path=checkpoint.path)
        for name, tensor in checkpoint.items():
            if not fits or any(fit.fullmatch(name) for fit in fits):
                found = tensor.fingerprint
                yield name, tensor.dtype_name, tensor.itemsize, tensor.shape, tensor.nbytes, "" if found is None else str(found)

    def _fill(self, segment: Segment, places: list[TensorPlace], chain: list[Checkpoint], held: Mapping | None) -> int:
        """Reads the chain into the memory. Returns the number of bytes read."""
        if held is not None:
            segment.copy_from(held, self._copy_threads)
        fetched = 0
        with memoryview(segment.memory) as memory:
            parts = {place.name: memory[place.offset : place.offset + place.size_bytes] for place in places if place.size_bytes}
            try:
                for checkpoint in chain:
                    report = checkpoint.read(parts, threads=self._threads, holds_base=held is not None)
                    fetched += report.plan.bytes_read + report.plan.table_bytes_read
            finally:
                for part in parts.values():
                    part.release()
        return fetched

    def _switch(self, version: int | None, began: float) -> Update | None:
        """Maps a version that is in the memory of the host. Returns None if it is not there, or this process has it."""
        before = None if self._mapping is None else self._mapping.generation
        for generation in sorted(self._host.generations(), key=lambda item: -item.sequence):
            if version not in (None, generation.version):
                continue
            if before is not None and (generation.attempt == before.attempt or
                                       (version is None and generation.sequence < before.sequence)):  # fmt: skip
                return None
            try:
                self._mapping = Mapping(generation)
            except StaleError:  # the one before it may be there
                continue
            return self._update_of(generation, before, time.monotonic() - began)
        return None

    def _update_of(self, new: Generation, before: Generation | None, seconds: float) -> Update:
        old = {} if before is None else {place.name: place for place in before.tensors}
        return Update(
            version=new.version, previous=None if before is None else before.version, attempt=new.attempt,
            chain=new.chain, changed=[place.name for place in new.tensors if _differs(place, old.get(place.name))],
            bytes_fetched=new.bytes_fetched, bytes_total=sum(place.size_bytes for place in new.tensors), seconds=seconds,
            is_leader=self._host.leads, skipped=new.skipped,
        )

    def _current(self) -> Mapping:
        if self._mapping is None:
            raise InvalidArgumentError("there is no version yet; expected a call of update or wait that returned one")
        return self._mapping

    def tensors(self) -> dict[str, Array]:
        """Returns read-only numpy arrays of the version that this process has, by name. They share the memory of the host.

        If neither numpy nor ml_dtypes has a dtype, its array is of bytes, with one more axis, as for ``sealpoint.open``.
        """
        mapping = self._current()
        memory = numpy().frombuffer(mapping.memory, dtype="u1")
        return {
            place.name: array_of(memory[place.offset : place.offset + place.size_bytes], place.dtype, place.itemsize, place.shape)
            for place in mapping.generation.tensors
        }

    def torch_tensors(self) -> dict[str, torch.Tensor]:
        """Returns torch tensors of the version that this process has, by name. They share the memory of the host.

        Needs torch. torch has no read-only tensors: a write to one ends this process (SIGSEGV).
        """
        from sealpoint.torch._host_views import views_of

        mapping = self._current()
        return views_of(mapping.memory, [(place.name, place.dtype, place.shape, place.offset, place.size_bytes)
                                         for place in mapping.generation.tensors])

    def fingerprints(self) -> dict[str, TensorFingerprint]:
        """Returns the fingerprints that the publisher computed of its own memory, for the version that this process has.

        Compare them with ``sealpoint.torch.fingerprints`` of an engine after its own loader has run, on any ranks.

        Raises InvalidArgumentError if the publisher stored none.
        """
        found = {}
        for place in self._current().generation.tensors:
            if not place.fingerprint:
                raise InvalidArgumentError("the publisher stored no fingerprint, expected fingerprints=True", tensor=place.name)
            found[place.name] = TensorFingerprint(place.dtype, place.shape, Fingerprint(place.fingerprint))
        return found

    def verify(self) -> int:
        """Compares the tensors in memory with the fingerprints that the publisher computed. Returns the number of tensors.

        Reads the memory once.

        Raises CorruptError, which names the tensor, and InvalidArgumentError if the publisher stored no fingerprints.
        """
        expected = self.fingerprints()
        arrays = self.tensors()

        def compute(name: str) -> Fingerprint:
            return _sealpoint.array_fingerprint((arrays[name], expected[name].dtype), None, None)

        with ThreadPoolExecutor(self._copy_threads) as pool:
            for name, found in zip(expected, pool.map(compute, expected), strict=True):
                if found != expected[name].fingerprint:
                    raise CorruptError(f"fingerprint in memory is {found}, expected {expected[name].fingerprint}", tensor=name)
        return len(expected)

    def close(self) -> None:
        """Gives up the memory, and the leadership if this process has it. Views stay valid as long as they exist."""
        self._mapping = None
        self._host.close()

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sealpoint.weights.Follower {self.place!r}: version {self.version}{', leader' if self.is_leader else ''}>"


def _differs(new: TensorPlace, old: TensorPlace | None) -> bool:
    """Tells whether a tensor changed, by its fingerprint. Without fingerprints, it may have."""
    return old is None or not new.fingerprint or (new.dtype, new.shape, new.fingerprint) != (old.dtype, old.shape, old.fingerprint)
