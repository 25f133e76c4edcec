# SPDX-License-Identifier: Apache-2.0
"""safetensors: single files, and directories of them with or without an index."""

from __future__ import annotations

import base64
import json
import math
import os
import re
from typing import Any, NamedTuple

from sealpoint import _tree
from sealpoint._errors import CorruptError, IncompleteError, LimitExceededError, NotACheckpointError, UnsupportedError
from sealpoint.convert._beside import take_beside
from sealpoint.convert._boxes import Box, Extents, whole
from sealpoint.convert._dcp_metadata import is_text
from sealpoint.convert._dtypes import ITEM_SIZE, OF_SAFETENSORS
from sealpoint.convert._files import File, join_inside, size_at
from sealpoint.convert._source import FileInfo, FileTensor, Opener, Portion, State, Tensor, flat_tree
from sealpoint.convert._zip import Entry

HEADER_BYTES_MAX = 100_000_000
METADATA = "safetensors.metadata"
TREE_KEY, OBJECT_KEY = "sealpoint.tree", "sealpoint.object."
_SHARDING = "DCP_SHARDING_INFO"
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.safetensors$")


class _Stored(NamedTuple):
    name: str
    dtype: str
    shape: Extents
    portion: Portion


class _File(NamedTuple):
    file: File
    tensors: list[_Stored]
    metadata: dict[str, str]


def looks_like(file: File) -> bool:
    """Whether it begins as a safetensors file."""
    if file.size < 10:
        return False
    head = file.read(0, 9)
    return head[8:] == b"{" and int.from_bytes(head[:8], "little") <= min(HEADER_BYTES_MAX, file.size)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is there twice")
    return result


def _header(file: File) -> tuple[dict[str, Any], int]:
    """The header, and where the tensors begin."""
    if file.size < 8:
        raise NotACheckpointError(f"the file has {file.size} bytes, a safetensors file at least 8", path=file.path)
    size = int.from_bytes(file.read(0, 8), "little")
    if size > HEADER_BYTES_MAX:
        raise LimitExceededError(
            f"header of the safetensors file has {size} bytes, expected {HEADER_BYTES_MAX} at most", path=file.path
        )
    try:
        data = file.read(8, size)
        file.budget.add(_cost_of(data), file.path)
        text = data.decode("utf-8")
        del data
        header = json.loads(text, object_pairs_hook=_unique)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CorruptError(f"header of the safetensors file is no JSON: {error!s:.100}", path=file.path, offset=8) from None
    if not isinstance(header, dict):
        raise CorruptError(
            f"header of the safetensors file is a {type(header).__name__}, expected an object", path=file.path, offset=8
        )
    return header, 8 + size


def _cost_of(header: bytes) -> int:
    """What it takes to read it, in bytes of memory. Equal to that of lib/safetensors/model.cc."""
    values = header.count(b",") + header.count(b"[")
    return len(header) * (6 if header.isascii() else 16) + 1024 * header.count(b"{") + 64 * values


def read_file(file: File) -> _File:
    """Errors: CorruptError, IncompleteError (cut off), UnsupportedError (a dtype), LimitExceededError."""
    header, begin = _header(file)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or any(type(value) is not str for value in metadata.values()):
        raise CorruptError("__metadata__ maps to something else than strings", path=file.path, offset=8)
    if not all(is_text(key) and is_text(value) for key, value in metadata.items()):
        raise CorruptError("__metadata__ has a string that is no text", path=file.path, offset=8)
    tensors = [_tensor(file, name, entry, begin) for name, entry in header.items()]
    end = begin
    for stored in sorted(tensors, key=lambda stored: (stored.portion.entry.begin, stored.portion.entry.size)):
        if stored.portion.entry.begin != end:
            raise CorruptError(
                f"its bytes begin at {stored.portion.entry.begin}, expected {end}, where those before it end",
                path=file.path,
                tensor=stored.name,
            )
        end += stored.portion.entry.size
    if end > file.size:
        raise IncompleteError(f"the file has {file.size} bytes, expected {end}", path=file.path)
    if end < file.size:
        raise CorruptError(f"the file has {file.size} bytes, of which {file.size - end} belong to no tensor", path=file.path)
    return _File(file, tensors, metadata)


def _tensor(file: File, name: str, entry: Any, begin: int) -> _Stored:
    def corrupt(message: str) -> CorruptError:
        return CorruptError(message, path=file.path, tensor=name)

    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise corrupt("entry of the header is not dtype, shape and data_offsets")
    if not is_text(name):
        raise CorruptError(f"name {name!a:.80} is no text", path=file.path)
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(offsets, list) or len(offsets) != 2 or not isinstance(shape, list) or len(shape) > 64:
        raise corrupt("shape or data_offsets is no list of sizes")
    if any(type(n) is not int or not 0 <= n < 1 << 62 for n in [*shape, *offsets]):
        raise corrupt("shape or data_offsets has what is no size")
    if type(entry["dtype"]) is not str or entry["dtype"] not in OF_SAFETENSORS:
        raise UnsupportedError(f"dtype is {entry['dtype']!a:.40}, which the format lacks", path=file.path, tensor=name)
    dtype = OF_SAFETENSORS[entry["dtype"]]
    if dtype == "f4_e2m1x2":
        if not shape or shape[-1] % 2:
            raise UnsupportedError(
                f"shape of an F4 tensor is {shape}, expected an even last extent, as two elements share a byte",
                path=file.path,
                tensor=name,
            )
        shape = [*shape[:-1], shape[-1] // 2]
    size = math.prod(shape) * ITEM_SIZE[dtype]
    if offsets[1] - offsets[0] != size:
        raise corrupt(f"data_offsets {offsets} have {offsets[1] - offsets[0]} bytes, dtype and shape {size}")
    stored = Entry(name, begin + offsets[0], size, None)
    return _Stored(name, dtype, tuple(shape), Portion(whole(tuple(shape)), file, stored, 0))


def open_file(path: str, opener: Opener) -> State:
    """A single file."""
    read = read_file(opener.files.open(path))
    tensors: dict[str, Tensor] = {
        one.name: FileTensor(one.name, one.dtype, one.shape, [one.portion]) for one in read.tensors
    }
    info = FileInfo(os.path.basename(path), read.file.size, "safetensors: a header of JSON, then the tensors")
    return _state("safetensors", path, tensors, [info], [read])


def open_directory(path: str, opener: Opener) -> State:
    """A directory as transformers has it: files with an index, or one file; or those of DCP's HuggingFaceStorageWriter."""
    names = sorted(name for name in os.listdir(path) if not name.startswith("."))
    indices = [name for name in names if name.endswith(".safetensors.index.json")]
    if len(indices) > 1:
        raise UnsupportedError(
            f"several indices: {', '.join(indices)}; expected one; convert the files one by one", path=path
        )
    mapping = _index(os.path.join(path, indices[0]), opener) if indices else None
    parts = (
        sorted(set(mapping.values())) if mapping is not None else [name for name in names if name.endswith(".safetensors")]
    )
    where = os.path.join(path, indices[0]) if indices else path
    reads = [read_file(opener.files.open(join_inside(path, name, where))) for name in parts]
    if mapping is not None:
        _check_index(mapping, parts, reads, where)
    notes: list[str] = []
    if mapping is None and any(_SHARDING in read.metadata for read in reads):
        tensors = _sharded(reads)
        notes.append("shapes are those of the parts that are there: the format does not say if a last part is missing")
    else:
        if mapping is None:
            _check_parts(parts, path)
        tensors = _gather(reads)
    files = [FileInfo(name, read.file.size, "safetensors: tensors") for name, read in zip(parts, reads, strict=True)]
    for name in names:
        if name not in parts:
            meaning = "index: which file has which tensor" if name in indices else "not part of the tensors, not read"
            full = os.path.join(path, name)
            files.append(FileInfo(name, size_at(full), meaning))
    state = _state("hf", path, tensors, files, reads)
    state.notes.extend(notes)
    take_beside(state, {name.split("/")[0] for name in (*parts, *indices)}, opener, may_link=True)
    return state


def _index(path: str, opener: Opener) -> dict[str, str]:
    file = opener.files.open(path)
    if file.size > HEADER_BYTES_MAX:
        raise LimitExceededError(f"the index has {file.size} bytes, expected {HEADER_BYTES_MAX} at most", path=path)
    try:
        mapping = json.loads(file.read(0, file.size).decode("utf-8"), object_pairs_hook=_unique)["weight_map"]
        if any(type(name) is not str for name in mapping.values()):
            raise ValueError("weight_map maps to something else than names of files")
        return dict(mapping)
    except (UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptError(f"not an index of safetensors: {error!r:.100}", path=path) from None


def _check_index(mapping: dict[str, str], parts: list[str], reads: list[_File], path: str) -> None:
    """That each tensor is in the file that it says. Files may have more: transformers reads those, too."""
    found = {one.name: part for part, read in zip(parts, reads, strict=True) for one in read.tensors}
    for name, part in sorted(mapping.items()):
        if found.get(name) != part:
            where = f"it is in {found[name]}" if name in found else "no file that it names has it"
            raise CorruptError(f"the index says that it is in {part}, {where}", path=path, tensor=name)


def _check_parts(parts: list[str], path: str) -> None:
    """That no numbered file is missing."""
    counts = {(match[2], name[: match.start()]) for name in parts if (match := _PART.search(name))}
    for count, stem in counts:
        for number in range(1, int(count) + 1):
            name = f"{stem}-{number:05}-of-{count}.safetensors"
            if name not in parts:
                raise IncompleteError(f"{name} is missing, and there is no index", path=path)


def _gather(reads: list[_File]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for read in reads:
        for one in read.tensors:
            if one.name in tensors:
                raise CorruptError("two files have it", path=read.file.path, tensor=one.name)
            tensors[one.name] = FileTensor(one.name, one.dtype, one.shape, [one.portion])
    return tensors


def _sharded(reads: list[_File]) -> dict[str, Tensor]:
    """Tensors of which each file has a box."""
    boxes: dict[str, list[_Stored]] = {}
    for read in reads:
        try:
            saved = json.loads(read.metadata.get(_SHARDING, "{}"))
            for one in read.tensors:
                offset = (
                    tuple(int(n) for n in saved[one.name]["saved_offsets"]) if one.name in saved else (0,) * len(one.shape)
                )
                if len(offset) != len(one.shape) or min(offset, default=0) < 0:
                    raise ValueError(f"saved_offsets {offset} for the shape {one.shape}")
                portion = one.portion._replace(box=Box(offset, one.shape))
                boxes.setdefault(one.name, []).append(one._replace(portion=portion))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptError(f"{_SHARDING} is malformed: {error!r:.100}", path=read.file.path) from None
    return {name: _joined(name, parts) for name, parts in boxes.items()}


def _joined(name: str, parts: list[_Stored]) -> FileTensor:
    ends = [tuple(x + n for x, n in zip(*part.portion.box, strict=True)) for part in parts]
    if len({(part.dtype, len(part.shape)) for part in parts}) > 1:
        raise CorruptError("files disagree about its dtype or dimensions", path=parts[0].portion.file.path, tensor=name)
    return FileTensor(
        name, parts[0].dtype, tuple(max(column) for column in zip(*ends, strict=True)), [part.portion for part in parts]
    )


def _state(format: str, path: str, tensors: dict[str, Tensor], files: list[FileInfo], reads: list[_File]) -> State:
    metadata: dict[str, str] = {}
    for read in reads:
        metadata.update({key: value for key, value in read.metadata.items() if key not in (_SHARDING, "DCP_VERSION")})
    state = State(format, path, flat_tree(list(tensors)), tensors, files, digest="none: safetensors has no digests")
    tree = metadata.pop(TREE_KEY, None)
    if tree is not None:
        state.tree = _tree.parse(tree.encode("utf-8", "surrogatepass"))
    for key in [key for key in metadata if key.startswith(OBJECT_KEY)]:
        state.objects[key.removeprefix(OBJECT_KEY)] = _object_of(metadata.pop(key), path)
    if metadata and metadata != {"format": "pt"}:
        state.objects[METADATA] = ("application/json", json.dumps(metadata, ensure_ascii=False, sort_keys=True).encode())
    return state


def _object_of(text: str, path: str) -> tuple[str, bytes]:
    try:
        media_type, data = json.loads(text)
        return str(media_type), base64.b64decode(data, validate=True)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptError(f"an object in __metadata__ is malformed: {error!r:.100}", path=path) from None
