# SPDX-License-Identifier: Apache-2.0
"""Copies tensors from a source to a destination: in slabs, with several threads, in bounded memory."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from sealpoint._errors import CancelledError, CorruptError, Error
from sealpoint._save import BlobWriter, Codec, commit
from sealpoint._sealpoint import CommitInfo, Fingerprint, NewFile, NewFiles, array_fingerprint, sync_all
from sealpoint._tree import MEDIA_TYPE, OBJECT, dump
from sealpoint.interop import _boxes
from sealpoint.interop._dtypes import ITEM_SIZE
from sealpoint.interop._files import attempt, descriptors_for, io_error
from sealpoint.interop._layout import Layout, Part, Small
from sealpoint.interop._source import State, Tensor, attributes_of, size_of

MEMORY_DEFAULT_BYTES = 256 << 20
_SLAB_BYTES_MAX = 16 << 20
_SLAB_BYTES_MIN = 64 << 10
# In a copy between files, slabs of this size stay in the cache of a core from read to write.
_FILE_SLAB_BYTES_MAX = 1 << 20
_WRITEBACK_BYTES = 32 << 20
_CALL_EVERY_SECONDS = 0.05
_OPEN_FILES_MAX = 64
_ALIGNMENT = 4096  # offset alignment of the larger parts of a checkpoint, in bytes
T = TypeVar("T")
Progress = Callable[[str, int, int], None] | None


class Work:
    """Threads, memory, progress and cancellation of one conversion."""

    def __init__(self, threads: int, memory_bytes: int, progress: Progress, is_far: bool = False) -> None:
        """Sets up a conversion.

        ``is_far``: source or destination is in an object store, where small requests take as long as large requests.
        """
        self.threads = threads
        self.stop = threading.Event()
        # Each thread has memory for up to three slabs: one for the data, one to join parts or to cast, and one for a strided
        # source.
        self.slab_bytes = max(_SLAB_BYTES_MIN, min(_SLAB_BYTES_MAX, memory_bytes // (threads * 4)))
        self.file_slab_bytes = _SLAB_BYTES_MAX if is_far else _FILE_SLAB_BYTES_MAX
        self.reader_bytes = max(_SLAB_BYTES_MIN, memory_bytes // (threads * 2))
        self._progress, self._lock = progress, threading.Lock()
        self._what, self._done, self._total, self._called = "", 0, 0, 0.0

    def begin(self, what: str, total: int) -> None:
        self._what, self._done, self._total = what, 0, total
        self._call(is_end=True)

    def add(self, count: int) -> None:
        """Adds bytes to the progress. Raises CancelledError."""
        if self.stop.is_set():
            raise CancelledError("another thread failed, or the caller cancelled")
        with self._lock:
            self._done += count
            self._call(is_end=self._done == self._total)

    def _call(self, is_end: bool) -> None:
        now = time.monotonic()
        if self._progress is not None and (is_end or now - self._called >= _CALL_EVERY_SECONDS):
            self._called = now
            self._progress(self._what, self._done, self._total)

    def run(self, call: Callable[[T], None], items: Iterable[T]) -> None:
        """Calls the function for each item, on all threads. The first error stops the remaining calls."""
        queue, lock = iter(items), threading.Lock()

        def worker() -> None:
            while not self.stop.is_set():
                with lock:
                    item = next(queue, _END)
                if item is _END:
                    return
                call(item)  # type: ignore[arg-type]

        with ThreadPoolExecutor(self.threads, "sealpoint-convert") as pool:
            futures = [pool.submit(worker) for _ in range(self.threads)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                if any(future.done() and future.exception() for future in futures) or not all(
                    future.done() for future in futures
                ):
                    self.stop.set()
        errors = [error for future in futures if (error := future.exception()) is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, CancelledError)):
            raise error

    def slabs(self, tensor: Tensor, box: _boxes.Box, bytes_max: int = _SLAB_BYTES_MAX) -> Iterator[_boxes.Box]:
        if box.size > 0:
            yield from _boxes.slabs(box, max(1, min(self.slab_bytes, bytes_max) // ITEM_SIZE[tensor.dtype]))


_END = object()


def buffer_for(tensor: Tensor, boxes: Sequence[_boxes.Box], work: Work) -> memoryview:
    """Returns memory for the largest slab."""
    largest = max((box.size for box in boxes), default=0) * ITEM_SIZE[tensor.dtype]
    return memoryview(bytearray(min(largest, max(work.slab_bytes, ITEM_SIZE[tensor.dtype]))))


# Writes into Sealpoint checkpoints.


def write_sealpoint(
    state: State, path: str, work: Work, codec: Codec, fingerprints: bool, provenance: dict[str, str]
) -> CommitInfo:
    """Writes a checkpoint into a new directory.

    Raises the errors of the sources and of ``sealpoint.commit``. The caller cleans up after an error.
    """
    writers = threading.local()
    all_writers: list[BlobWriter] = []
    lock = threading.Lock()

    def writer() -> BlobWriter:
        if not hasattr(writers, "own"):
            writers.own = BlobWriter(path, step=state.step, fingerprints=fingerprints)
            with lock:
                all_writers.append(writers.own)
        made: BlobWriter = writers.own
        return made

    try:
        work.begin("convert", sum(size_of(tensor) for tensor in state.tensors.values()))
        work.run(lambda tensor: _add_tensor(tensor, writer(), work, codec), state.tensors.values())
        last = all_writers[0] if all_writers else writer()
        last.add_object(OBJECT, (dump(state.tree), MEDIA_TYPE))
        for name, (media_type, data) in state.all_objects.items():
            last.add_object(name, (data, media_type))
        summaries = [summary for writer in all_writers for summary in writer.finish()]
        return commit(
            path, summaries, step=state.step, provenance=provenance, attributes=state.attributes, allow_empty=True
        )
    except BaseException:
        for item in all_writers:
            item.abandon()
        raise


def sealpoint_bytes(state: State) -> int:
    """Returns the maximum total size of the payload in a checkpoint of this state, excluding tables and the index."""
    tensors = sum(size_of(tensor) + _ALIGNMENT * max(1, len(tensor.boxes)) for tensor in state.tensors.values())
    objects = sum(len(data) for _, data in state.all_objects.values())
    return tensors + objects + len(dump(state.tree))


def _add_tensor(tensor: Tensor, writer: BlobWriter, work: Work, codec: Codec) -> None:
    attributes = attributes_of(tensor)
    if 0 in tensor.shape:
        writer.add(
            tensor.name,
            (_shaped(memoryview(bytearray()), tensor.dtype), tensor.dtype),
            shape=tensor.shape,
            extent=tensor.shape,
            codec=codec,
            attributes=attributes,
        )
        return
    reader = tensor.reader(work.reader_bytes)
    buffer = buffer_for(tensor, tensor.boxes, work)
    for box in tensor.boxes:
        for slab in work.slabs(tensor, box):
            part = buffer[: slab.size * ITEM_SIZE[tensor.dtype]]
            reader.read(slab, part)
            run = None if slab == box else _boxes.run_of(slab, box)
            writer.add(
                tensor.name,
                (_shaped(part, tensor.dtype), tensor.dtype),
                shape=tensor.shape,
                offset=box.offset,
                extent=box.extent,
                run=run,
                codec=codec,
                attributes=attributes,
            )
            work.add(len(part))
    reader.finish()


def _shaped(data: memoryview, dtype: str) -> Any:
    """Returns bytes as an array with an additional axis of the element's size."""
    size = ITEM_SIZE[dtype]
    if len(data) == 0:
        return bytearray() if size == 1 else memoryview(bytearray(size)).cast("B", (1, size))[:0]
    return data if size == 1 else data.cast("B", (len(data) // size, size))


# Writes into files.


class Output(Protocol):
    """Output files, identified by number. Thread-safe.

    If ``is_forward`` is true, each write waits until all lower offsets were written. Otherwise, the small byte strings of a file
    are written last, so that an unfinished file is never mistaken for a complete one.
    """

    is_forward: bool

    def begin(self, file: int) -> None:
        """Begins a file. Called before the first byte of the file is written."""

    def write(self, file: int, offset: int, data: memoryview) -> None: ...
    def written(self, file: int, offset: int, size: int) -> None:
        """Called after these bytes were written. They are never written again."""

    def complete(self, file: int) -> None:
        """Called after all bytes of the file were written."""

    def finish(self) -> None:
        """Makes all files durable. Called after all files are complete."""

    def close(self) -> None:
        """Closes the files. Also called after errors."""


class LocalOutput:
    """Files in a file system. Only a few files are open at the same time; files are synced before they are closed."""

    is_forward = False

    def __init__(self, paths: Sequence[str], sizes: Sequence[int]) -> None:
        self._paths, self._sizes = paths, sizes
        self._lock = threading.Lock()
        self._made = set[int]()
        self._open = dict[int, int]()  # descriptors by file, the most recently used one last
        self._users = Counter[int]()
        self._open_max = descriptors_for(_OPEN_FILES_MAX)

    @contextlib.contextmanager
    def _opened(self, file: int) -> Iterator[int]:
        """Yields the descriptor of a file, which stays open while the block runs."""
        with self._lock:
            if file not in self._open:
                self._close_one()
                attempt(lambda: self._open_one(file), self._paths[file])
            descriptor = self._open[file] = self._open.pop(file)
            self._users[file] += 1
        try:
            yield descriptor
        finally:
            with self._lock:
                self._users[file] -= 1

    def _open_one(self, file: int) -> None:
        is_new = file not in self._made
        flags = os.O_WRONLY | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if is_new else 0)
        self._open[file] = os.open(self._paths[file], flags, 0o666)
        if is_new:
            self._made.add(file)
            os.ftruncate(self._open[file], self._sizes[file])

    def _close_one(self) -> None:
        if len(self._open) < self._open_max:
            return
        file = next((item for item in self._open if self._users[item] == 0), None)
        if file is not None:
            self._sync(file)
            os.close(self._open.pop(file))

    def _sync(self, file: int) -> None:
        sync_all(self._paths[file])

    def begin(self, file: int) -> None:
        with self._opened(file):
            pass

    def write(self, file: int, offset: int, data: memoryview) -> None:
        with self._opened(file) as descriptor:
            while len(data) > 0:
                try:
                    count = os.pwrite(descriptor, data, offset)
                except OSError as error:
                    raise io_error(error, self._paths[file]) from error
                data, offset = data[count:], offset + count

    def written(self, file: int, offset: int, size: int) -> None:
        """Starts writeback early, so that the final sync is shorter."""
        with self._opened(file) as descriptor:
            os.posix_fadvise(descriptor, offset, size, os.POSIX_FADV_DONTNEED)

    def complete(self, file: int) -> None:
        """Does nothing, because ``finish`` syncs all files together."""

    def finish(self) -> None:
        for file in sorted(self._open):
            self._sync(file)

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


class StoredOutput:
    """Files in an object store. Each file exists only after it is complete."""

    is_forward = True

    def __init__(self, files: NewFiles) -> None:
        self._files, self._open = files, dict[int, NewFile]()

    def begin(self, file: int) -> None:
        self._open[file] = self._files.begin(file)

    def write(self, file: int, offset: int, data: memoryview) -> None:
        self._open[file].write_at(offset, data)

    def written(self, file: int, offset: int, size: int) -> None:
        """Does nothing, because ``write`` already uploads the bytes."""

    def complete(self, file: int) -> None:
        self._open[file].close()
        del self._open[file]

    def finish(self) -> None:
        """Does nothing, because each complete file is already durable."""

    def close(self) -> None:
        self._open.clear()


class _Filling:
    """Writes each small byte string between the parts as soon as its content is known, and completes the files in order.

    The lowest missing offset of a file can therefore always be written. This prevents deadlocks of uploads, which need ascending
    offsets.
    """

    def __init__(self, layout: Layout, output: Output) -> None:
        self._layout, self._output, self._lock = layout, output, threading.Lock()
        self._begun, self._completed = set[int](), set[int]()
        self._late: list[Small] = []
        self._first: dict[int, list[Small]] = {}  # by file: strings that can be written at the beginning
        self._waiting: dict[int, list[Small]] = {}  # by part: strings that wait for this part
        self._needed: dict[int, int] = {}  # by waiting string: number of missing parts
        self._left = Counter(part.file for part in layout.parts if part.size > 0)  # by file: number of missing parts and strings
        for small in layout.smalls:
            needs = small.needs
            if not needs:
                self._first.setdefault(small.file, []).append(small)
                continue
            self._left[small.file] += 1
            self._needed[id(small)] = len(needs)
            for part in needs:
                self._waiting.setdefault(part, []).append(small)

    def begin(self, file: int) -> None:
        with self._lock:
            if file in self._begun:
                return
            self._output.begin(file)
            for small in self._first.get(file, ()):
                self._write(small)
            self._begun.add(file)

    def done(self, part: Part) -> None:
        """Called after the whole part was written."""
        if part.size == 0:
            return
        ready = []
        with self._lock:
            for small in self._waiting.pop(id(part), ()):
                self._needed[id(small)] -= 1
                if self._needed[id(small)] == 0:
                    ready.append(small)
        for small in ready:
            self._write(small)
        with self._lock:
            self._left[part.file] -= 1 + len(ready)
            is_complete = self._left[part.file] == 0
        if is_complete and part.file + 1 < len(self._layout.names):
            self._complete(part.file)

    def finish(self) -> None:
        for file in range(len(self._layout.names)):
            if file not in self._completed:
                self.begin(file)
                self._complete(file)
        for small in self._late:
            self._output.write(small.file, small.offset, memoryview(small.data()))
        self._output.finish()

    def _write(self, small: Small) -> None:
        if self._output.is_forward:
            self._output.write(small.file, small.offset, memoryview(small.data()))
        else:
            self._late.append(small)

    def _complete(self, file: int) -> None:
        self._output.complete(file)
        self._completed.add(file)


def write_files(layout: Layout, output: Output, work: Work) -> None:
    """Writes the files of a layout durably. Raises NoSpaceError, IoError, and the errors of sources."""
    try:
        filling = _Filling(layout, output)
        work.begin("convert", sum(part.size for part in layout.parts))
        has_digests = layout.has_digests
        tasks = (list(parts) for _, parts in itertools.groupby(layout.parts, lambda part: id(part.tensor)))
        work.run(lambda parts: _write_parts(parts, filling, output, work, has_digests), tasks)
        filling.finish()
    finally:
        output.close()


def _write_parts(parts: list[Part], filling: _Filling, output: Output, work: Work, has_digests: bool) -> None:
    """Writes the parts of one tensor."""
    tensor = parts[0].tensor
    reader = tensor.reader(work.reader_bytes)
    buffer = buffer_for(tensor, [part.box for part in parts], work)
    for part in parts:
        filling.begin(part.file)
        at = begun = part.offset
        for slab in work.slabs(tensor, part.box, work.file_slab_bytes):
            data = buffer[: slab.size * ITEM_SIZE[tensor.dtype]]
            reader.read(slab, data)
            if has_digests:
                part.crc = zlib.crc32(data, part.crc)
            output.write(part.file, at, data)
            at += len(data)
            if at - begun >= _WRITEBACK_BYTES:
                output.written(part.file, begun, at - begun)
                begun = at
            work.add(len(data))
        filling.done(part)
    reader.finish()


def fingerprint_of(tensor: Tensor, work: Work) -> Fingerprint:
    """Reads a tensor, and computes its fingerprint."""
    reader, whole = tensor.reader(work.reader_bytes), _boxes.whole(tensor.shape)
    buffer, found = buffer_for(tensor, [whole], work), Fingerprint()
    for slab in work.slabs(tensor, whole, work.file_slab_bytes):
        part = buffer[: slab.size * ITEM_SIZE[tensor.dtype]]
        reader.read(slab, part)
        size = ITEM_SIZE[tensor.dtype]
        array = part.cast("B", (*slab.extent, size) if size > 1 else tuple(slab.extent))
        found += array_fingerprint((array, tensor.dtype), list(tensor.shape), list(slab.offset))
        work.add(len(part))
    reader.finish()
    return found


def fingerprints_of(tensors: Sequence[Tensor]) -> list[Fingerprint]:
    """Reads tensors on several threads, and computes their fingerprints."""
    work = Work(os.cpu_count() or 1, MEMORY_DEFAULT_BYTES, None)
    found: dict[int, Fingerprint] = {}
    work.run(lambda number: found.update({number: fingerprint_of(tensors[number], work)}), range(len(tensors)))
    return [found[number] for number in range(len(tensors))]


def compare(source: State, target: State, work: Work) -> int:
    """Compares every element of all tensors. Returns the compared size in bytes.

    Reads all tensors of the target. Reads only source tensors that have no stored fingerprint.

    Raises CorruptError, which names the tensor.
    """
    if list(sorted(source.tensors)) != list(sorted(target.tensors)):
        differing = min(source.tensors.keys() ^ target.tensors.keys())
        raise CorruptError("only in one of source and destination", path=target.path, tensor=differing)
    total = sum(size_of(tensor) for tensor in source.tensors.values())
    work.begin("verify", total)
    work.run(lambda name: _compare(source.tensors[name], target.tensors[name], target.path, work), source.tensors)
    return total


def _compare(a: Tensor, b: Tensor, path: str, work: Work) -> None:
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        raise CorruptError(
            f"destination has {b.dtype} {list(b.shape)}, expected {a.dtype} {list(a.shape)}", path=path, tensor=a.name
        )
    if (stored := getattr(a, "fingerprint", None)) is not None:
        if fingerprint_of(b, work) != stored:
            raise CorruptError("its fingerprint differs from the one stored in the source", path=path, tensor=a.name)
        return
    readers = [item.reader(work.reader_bytes) for item in (a, b)]
    whole = _boxes.whole(a.shape)
    buffers = [buffer_for(a, [whole], work) for _ in readers]
    for slab in work.slabs(a, whole, work.file_slab_bytes):
        size = slab.size * ITEM_SIZE[a.dtype]
        for reader, buffer in zip(readers, buffers, strict=True):
            reader.read(slab, buffer[:size])
        if buffers[0][:size] != buffers[1][:size]:
            raise CorruptError(
                f"the box at {list(slab.offset)} of {list(slab.extent)} differs from the source", path=path, tensor=a.name
            )
        work.add(size)
    for reader in readers:
        reader.finish()
