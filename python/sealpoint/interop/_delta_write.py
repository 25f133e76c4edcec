# SPDX-License-Identifier: Apache-2.0
"""Writes deltas of versions of weights, in the form that slime, miles, SGLang and ModelExpress exchange."""

from __future__ import annotations

import json
import os
import re
from typing import Any, NamedTuple

from sealpoint import _paths
from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint._sealpoint import DeltaEncoder, publish, remove_path, write_file
from sealpoint._tree import text_of
from sealpoint._tree_paths import kind_of
from sealpoint.interop._boxes import whole
from sealpoint.interop._copy import LocalOutput, Work, buffer_for
from sealpoint.interop._dtypes import ITEM_SIZE
from sealpoint.interop._safetensors_write import HEADER_BYTES_MAX, INDEX
from sealpoint.interop._select import leaves
from sealpoint.interop._source import FileInfo, State, Tensor, size_of

_NAME = re.compile(r"weight_v(\d{6})")
# Small models, too, are written on several threads. The files do not depend on the number of threads.
_FILES, _FILE_BYTES_MIN = 8, 64 << 20
_COUNT_MAX = 2**63
_CHECKSUM = "0" * 8


class Versions(NamedTuple):
    version: str
    base: str


def version_of(path: str) -> str:
    """Returns the version that the name of a directory gives. Raises InvalidArgumentError."""
    match = _NAME.fullmatch(_paths.split(path)[1])
    if match is None:
        raise InvalidArgumentError(
            "expected a destination named weight_v and six digits, such as weight_v000012, by which readers find it", path=path
        )
    return match[1]


def versions_of(path: str, base: str) -> Versions:
    """Returns the versions of a delta and of its base, which is the version before if its name gives none.

    Raises InvalidArgumentError, and UnsupportedError in an object store.
    """
    if not _paths.is_local(path):
        raise UnsupportedError("a delta cannot be written to an object store; write it to a disk, and copy it", path=path)
    version, match = version_of(path), _NAME.fullmatch(_paths.split(base)[1])
    before = match[1] if match else f"{int(version) - 1:06}"
    if not before < version or int(version) == 0:
        raise InvalidArgumentError(f"the base is version {int(before)}, expected one before the version of the delta", path=path)
    return Versions(version, before)


def check_base(state: State, base: State) -> None:
    """Raises UnsupportedError if a delta cannot express the difference between two states: it holds bytes of tensors only."""
    for name in sorted(state.tensors.keys() ^ base.tensors.keys()):
        where = "new state" if name in state.tensors else "base"
        raise UnsupportedError(f"only in the {where}; a delta needs the same tensors on both sides", path=base.path, tensor=name)
    for name, tensor in state.tensors.items():
        old = base.tensors[name]
        if (tensor.dtype, tensor.shape) != (old.dtype, old.shape):
            raise UnsupportedError(
                f"is {tensor.dtype} {list(tensor.shape)}, but {old.dtype} {list(old.shape)} in the base; a delta keeps both",
                path=base.path, tensor=name,
            )  # fmt: skip
    values, old_values = (dict(_values(one)) for one in (state, base))
    for name in sorted(values.keys() | old_values.keys()):
        if values.get(name) != old_values.get(name):
            raise UnsupportedError(
                "its value differs from the base's; a delta holds tensors only, --tensors-only (tensors_only) leaves out the rest",
                path=base.path, object=name,
            )  # fmt: skip


def _values(state: State) -> list[tuple[str, Any]]:
    nodes: list[tuple[str, Any]] = [(text_of(path), node) for path, node in leaves(state.tree) if kind_of(node) != "tensor"]
    return nodes + list(state.all_objects.items())


class _Shard:
    """A file of frames. Its header is written last, into room for the longest one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.tensors: list[Tensor] = []
        self.raw_bytes, self._room = 0, 64
        self._checksums: dict[str, str] = {}
        self.header: dict[str, Any] = {"__metadata__": self._checksums}
        self._at = 0

    def fits(self, tensor: Tensor, bytes_max: int) -> bool:
        return self.raw_bytes + size_of(tensor) <= bytes_max and self._room + _room_of(tensor.name) <= HEADER_BYTES_MAX

    def add(self, tensor: Tensor) -> None:
        self.tensors.append(tensor)
        self.raw_bytes += size_of(tensor)
        self._room += _room_of(tensor.name)

    @property
    def is_changed(self) -> bool:
        return bool(self._checksums)

    def write(self, base: State, work: Work) -> None:
        output = LocalOutput([self.path], [0])
        self._room += -self._room % 8
        try:
            output.begin(0)
            for tensor in self.tensors:
                self._write(tensor, base.tensors[tensor.name], output, work)
            text = json.dumps(self.header, ensure_ascii=False, separators=(",", ":")).encode("utf-8").ljust(self._room)
            output.write(0, 0, memoryview(self._room.to_bytes(8, "little") + text))
            output.finish()
        finally:
            output.close()

    def _write(self, tensor: Tensor, old: Tensor, output: LocalOutput, work: Work) -> None:
        encoder, begin = DeltaEncoder(size_of(tensor)), self._at
        box, frame = whole(tensor.shape), b""
        readers = [one.reader(work.reader_bytes) for one in (old, tensor)]
        buffers = [buffer_for(tensor, [box], work) for _ in readers]
        for slab in work.slabs(tensor, box, work.file_slab_bytes):
            parts = [buffer[: slab.size * ITEM_SIZE[tensor.dtype]] for buffer in buffers]
            for reader, part in zip(readers, parts, strict=True):
                reader.read(slab, part)
            frame += encoder.add(*parts)
            if encoder.is_changed:  # until then the frame is tiny
                output.write(0, 8 + self._room + self._at, memoryview(frame))
                self._at, frame = self._at + len(frame), b""
            work.add(len(parts[0]))
        for reader in readers:
            reader.finish()
        if encoder.is_changed:
            self.header[tensor.name] = _entry(begin, self._at)
            self._checksums[tensor.name] = encoder.checksum


def _entry(begin: int, end: int) -> dict[str, Any]:
    return {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}


def _room_of(name: str) -> int:
    """Returns the largest size of a tensor in a header."""
    texts = (json.dumps({name: value}, ensure_ascii=False) for value in (_entry(_COUNT_MAX, 2 * _COUNT_MAX), _CHECKSUM))
    return sum(len(text.encode("utf-8")) for text in texts)


def write_delta(
    state: State, base: State, versions: Versions, directory: str, work: Work, shard_bytes_max: int
) -> list[FileInfo]:
    """Writes a delta into a new directory, the index last. Raises the errors of the sources, NoSpaceError and IoError."""
    total = sum(map(size_of, state.tensors.values()))
    bytes_max = min(shard_bytes_max, max(total // _FILES, _FILE_BYTES_MIN))
    shards: list[_Shard] = []
    for tensor in state.tensors.values():
        if not shards or not shards[-1].fits(tensor, bytes_max):
            shards.append(_Shard(os.path.join(directory, f"{len(shards)}.part")))
        shards[-1].add(tensor)
    work.begin("convert", total)
    work.run(lambda shard: shard.write(base, work), shards)
    changed = [shard for shard in shards if shard.is_changed]
    mapping, names = {}, []
    for number, shard in enumerate(changed):
        names.append(f"model-{number:05}-of-{len(changed):05}.safetensors")
        publish(shard.path, os.path.join(directory, names[-1]))
        mapping.update({tensor: names[-1] for tensor in shard.header if tensor != "__metadata__"})
    for shard in shards:
        if not shard.is_changed:
            remove_path(shard.path)
    metadata = {"version": versions.version, "base_version": versions.base, "delta_encoding": "xor",
                "compression_format": "zstd", "checksum_format": "adler32"}  # fmt: skip
    index = json.dumps({"metadata": metadata, "weight_map": dict(sorted(mapping.items()))}, indent=2)
    write_file(os.path.join(directory, INDEX), index.encode() + b"\n")
    sizes = _paths.sizes_of(directory)
    return [FileInfo(name, sizes[name], "") for name in (*names, INDEX)]
