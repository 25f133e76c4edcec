# SPDX-License-Identifier: Apache-2.0
"""Conversion between any two formats."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import Path, check, path_of
from sealpoint._errors import ArgumentTypeError, Error, InvalidArgumentError, MismatchError, UnsupportedError
from sealpoint._patterns import renamer
from sealpoint._save import Codec
from sealpoint._tree import PARAMETERS, UNITED, VERSIONS, Node, text_of
from sealpoint._tree_paths import flatten
from sealpoint.interop import (
    _buckets,
    _copy,
    _delta_write,
    _destination,
    _gguf_write,
    _hdf5_write,
    _safetensors_write,
    _torch_write,
)
from sealpoint.interop._cast import cast
from sealpoint.interop._files import io_error
from sealpoint.interop._layout import Layout
from sealpoint.interop._map import apply_rules, read_rules
from sealpoint.interop._map_back import apply_back
from sealpoint.interop._megatron import MARKER
from sealpoint.interop._open import Reading, check_read, open_source, open_unchecked
from sealpoint.interop._select import rename as rename_leaves
from sealpoint.interop._select import select
from sealpoint.interop._source import FileInfo, LeftOut, State, attributes_of, size_of

Format = Literal["sealpoint", "safetensors", "hf", "torch", "dcp", "megatron", "delta", "gguf", "hdf5"]
FORMATS: tuple[str, ...] = get_args(Format)
# Format by the suffix of the destination, if the caller names no format. A destination without a suffix is a Sealpoint checkpoint.
_OF_SUFFIX: dict[str, Format] = {
    ".safetensors": "safetensors", ".pt": "torch", ".pth": "torch", ".bin": "torch", ".ckpt": "torch",
    ".gguf": "gguf", ".h5": "hdf5", ".hdf5": "hdf5",
}  # fmt: skip
_NOT_WRITTEN = (
    ".distcp", ".json", ".keras", ".msgpack", ".npy", ".npz", ".onnx", ".pkl", ".zarr", ".zip",
)  # fmt: skip
_DIRECTORIES = ("hf", "dcp", "megatron", "delta")
_PICKLED = ("torch", "dcp", "megatron")
THREADS_DEFAULT = 4
_THREADS_FAR = 8  # these threads mostly wait for the object store


@dataclasses.dataclass(frozen=True)
class Report:
    """Result of a conversion; for a dry run, the expected result.

    Attributes:
        source_format, format: Names of the formats, as for ``to``. "hf_torch" is a Hugging Face directory of torch.save files,
            "llama" is a directory of Meta's, "deepspeed" is a directory of ZeRO, "megatron_torch" is one of Megatron's ranks,
            "accelerate" is one of accelerate for FSDP, and "orbax" is one of Orbax.
        path: Path of the result.
        tensor_count, raw_bytes: Number and total size of the tensors.
        files: Written files with their sizes. Empty for a dry run with the format "sealpoint" or "hdf5".
        dropped: Names that were left out at the caller's request.
        notes: Sentences that describe how the result differs from the source.
        source_digest: Kind of the digests with which the bytes of the source were verified.
        unprotected_count: Number of source tensors without a digest. The conversion cannot verify these tensors.
        verified_bytes: Number of bytes compared between source and destination. None if ``verify`` was not requested.
        needed_bytes: Required disk space in bytes, checked before writing. 0 for a delta, whose size is not known before.
        seconds: Duration of the conversion.
        left_out: Items next to the source that were not read, except for items that the caller excluded.
        missing: Tensors that the source's index lists but no file contains. ``allow_missing`` must permit each of them.
    """

    source_format: str
    format: str
    path: str
    tensor_count: int
    raw_bytes: int
    files: list[FileInfo]
    dropped: list[str]
    notes: list[str]
    source_digest: str
    unprotected_count: int
    verified_bytes: int | None
    needed_bytes: int
    seconds: float
    left_out: list[LeftOut]
    missing: list[str]

    @property
    def is_whole(self) -> bool:
        """Tells whether the result is complete: all items that were not read are excluded by the caller or contain no state."""
        return not any(entry.may_hold_state for entry in self.left_out)


class _Written(NamedTuple):
    files: list[FileInfo]
    needed_bytes: int
    verified_bytes: int | None


def convert(
    source: Path,
    destination: Path,
    *,
    to: Format | None = None,
    match: Sequence[str] = (),
    drop: Sequence[str] = (),
    rename: Sequence[tuple[str, str]] = (),
    mapping: Path | None = None,
    mapping_back: bool = False,
    buckets: Path | None = None,
    tensors_only: bool = False,
    dtype: str | None = None,
    gguf_metadata: Mapping[str, tuple[str, Any]] | None = None,
    drop_unknown: bool = False,
    per_rank: Sequence[str] = (),
    allow_part: bool = False,
    allow_missing: Sequence[str] = (),
    base: Path | None = None,
    metadata_memory_bytes: int | None = None,
    max_shard_bytes: int = _safetensors_write.SHARD_BYTES_DEFAULT,
    codec: Codec = "none",
    fingerprints: bool = False,
    threads: int | None = None,
    memory_bytes: int = _copy.MEMORY_DEFAULT_BYTES,
    verify: bool = False,
    dry_run: bool = False,
    progress: _copy.Progress = None,
) -> Report:
    """Converts a checkpoint to a different format. Data is streamed, so the memory does not depend on the size of the checkpoint.

    One process calls this function. Returns a Report. Runs no pickle, and needs neither torch nor a GPU. If the source format has
    digests, all bytes read are verified. After an error the destination does not exist. The output is written to a temporary
    directory next to the destination, with a name that ends in ``.partial-`` and eight digits. If a conversion is killed, the next
    call with the same destination removes its temporary directory. In an object store, files are created under their final names,
    and the file that readers open first is written last.

    Args:
        source: Path or URL (``sealpoint.storage``). It is a safetensors or torch.save file, or a directory written by Sealpoint,
            torch.distributed.checkpoint, Megatron (torch_dist) or Hugging Face, or a version of weights as slime, miles and SGLang
            exchange them, complete or a delta.
        destination: New path in an existing directory. For the format "sealpoint", it may also be an empty directory.
        to: "sealpoint", "safetensors" (one file), "hf" (a directory of safetensors), "torch" (a torch.save file), "dcp",
            "megatron", "delta" (a version of weights, named weight_v and six digits) or "hdf5" (one file, in a file system; needs
            h5py). By default, the suffix of the destination determines the format (.safetensors means "safetensors"; .pt, .pth,
            .bin and .ckpt mean "torch"; .h5 and .hdf5 mean "hdf5"); any other suffix means "sealpoint".
        match: Patterns of names to convert. Default: all. ``*`` matches any characters including dots; ``?`` matches one character.
        drop: Patterns of names to leave out. "optimizer" stands for the usual names of optimizer state.
        rename: (pattern, name) pairs. The first pair whose pattern matches a name applies. A ``*`` in the new name stands for the
            text that the ``*`` of the pattern matched. The result is one flat mapping from names to values.
        mapping: File of rules, as an alternative to ``rename``. Rules can also split tensors; see docs/guides/convert.md.
        mapping_back: Apply the rules of ``mapping`` in reverse.
        buckets: JSON file with the result of ``sealpoint.megatron.bucket_layout``. Bucketed optimizer state of Megatron is then
            converted to per-parameter state, before ``match``, ``drop`` and the renaming apply.
        tensors_only: Leave out values other than tensors.
        dtype: Convert all floating-point tensors to this dtype, such as "bf16" or "bfloat16". If the dtype cannot represent a
            value, an error is raised.
        gguf_metadata: For the format "gguf", keys that replace or extend the keys of a GGUF source: key -> (type, value), such as
            {"general.architecture": ("string", "llama")}. The types are those of GGUF: "uint32", "float32", "bool", "string" and so
            on, and "array", whose value is again (type, values). This key is required if the source is not from GGUF.
        drop_unknown: Leave out pickled values of unknown classes, and DCP and Megatron tensors with dtypes that the new format
            lacks. If False, these are errors.
        per_rank: Patterns of names whose values differ between ranks, in a DCP directory with metadata per rank.
        allow_part: Convert one file of a state that consists of several files (``consolidated.00.pth``, ``mp_rank_00``), and list
            the other files in ``left_out``. If False, such a file is an error.
        allow_missing: Patterns of tensors that may be absent from the files although the source's index lists them. The absent
            tensors are listed in ``missing``. Any other absent tensor is an error.
        base: For the format "delta", the checkpoint, in any readable format, that the destination is a delta to. Without it, the
            destination is complete. For a source that is a delta, the complete checkpoint that its deltas start from, if no
            directory beside it holds this checkpoint.
        metadata_memory_bytes: Maximum memory for names, values and tensor locations. Default: 16 times the size of the files that
            contain this data, plus 64 MiB.
        max_shard_bytes: Maximum size of a file of the format "hf". A larger tensor gets its own file.
        codec: Codec for the format "sealpoint".
        fingerprints: Store the fingerprints of the tensors, for the format "sealpoint".
        threads: Number of threads that copy. Default: the number of CPUs, at most 4; for object stores, 8.
        memory_bytes: Maximum memory for the tensor data that all threads together process simultaneously. Small values, names and
            the reader of Sealpoint checkpoints need some additional memory.
        verify: Read source and destination again, and compare them. If a source tensor has a stored fingerprint, only the
            destination is read again, and the fingerprints are compared.
        dry_run: Report the expected result without writing. Checks the destination and its free space.
        progress: Function called with (text, bytes done, total bytes) from time to time, on any thread.

    Raises:
        AlreadyExistsError: the destination exists.
        UnsupportedError: the format cannot represent an item. The error names the item.
        MismatchError: ``dtype`` cannot represent a value.
        InvalidArgumentError: an argument is invalid.
        NotFoundError: a pattern matches nothing, or the parent of the destination does not exist.
        NoSpaceError: the storage is full. The error is raised before anything is written if the free space is known.
        IoError: the storage failed.
        Error: as for ``sealpoint.interop.open_source``.

    Examples:
        >>> import numpy, sealpoint
        >>> from sealpoint.interop import convert
        >>> _ = sealpoint.save({"w": numpy.ones(8, "f4")}, "checkpoint")
        >>> convert("checkpoint", "model.safetensors").tensor_count
        1
    """
    began = time.monotonic()
    if to is None:
        to = _format_of(path_of(destination, "destination"))
    check(to=to, match=match, drop=drop, rename=rename, mapping_back=mapping_back, tensors_only=tensors_only, dtype=dtype,
          gguf_metadata=gguf_metadata,
          max_shard_bytes=max_shard_bytes, codec=codec, fingerprints=fingerprints,
          threads=THREADS_DEFAULT if threads is None else threads, memory_bytes=memory_bytes, verify=verify,
          dry_run=dry_run)  # fmt: skip
    if progress is not None and not callable(progress):
        raise ArgumentTypeError(f"progress is {progress!r:.80}, expected a function, or None")
    source = path_of(source, "source")
    path = path_of(destination, "destination")
    if mapping_back and mapping is None:
        raise InvalidArgumentError("mapping_back is set, expected a mapping with it")
    if gguf_metadata is not None and to != "gguf":
        raise InvalidArgumentError("gguf_metadata (--gguf-metadata) is set, but the destination is not GGUF", path=path)
    rules = read_rules(mapping) if mapping is not None else None
    layout = _buckets.read_layout(buckets) if buckets is not None else None
    is_far = not (_paths.is_local(source) and _paths.is_local(path))
    threads_default = _THREADS_FAR if is_far else min(THREADS_DEFAULT, os.cpu_count() or 1)
    work = _copy.Work(threads or threads_default, memory_bytes, progress, is_far)
    dropped: list[str] = []
    base = None if base is None else path_of(base, "base")
    delta = None if to != "delta" or base is None else _delta_write.versions_of(path, base)
    version = _delta_write.version_of(path) if to == "delta" else None
    reading = Reading(drop_unknown, per_rank, allow_part, allow_missing, base, metadata_memory_bytes)
    if to == "hdf5":
        _paths.local(path, "destination", "HDF5 files are not written in order")
    target = _destination.prepare(path, to == "sealpoint", to == "sealpoint" or to in _DIRECTORIES, dry_run)
    with open_unchecked(source, reading, goes_on=True) as opened:
        whole = opened if layout is None else _buckets.resolve(check_read(opened), layout, memory_bytes)
        state = check_read(select(whole, match, drop, tensors_only, dropped))
        if _buckets.has_buckets(state):
            state.notes.append(_buckets.NOTE)
        if rules is not None:
            state = apply_back(state, rules) if mapping_back else apply_rules(state, rules, dropped)
        if rename or to == "gguf":  # GGUF has no nested names
            state = rename_leaves(state, renamer(rename) if rename else str)
        if dtype is not None:
            state = cast(state, dtype)
        _check_objects(state, to)
        if base is not None or to not in ("sealpoint", "safetensors", "hf", "delta", "hdf5"):
            _note_attributes(state, to)
        if base is not None and to != "delta" and opened.format != "delta":
            raise InvalidArgumentError("base (--base) is set, but neither the source nor the destination is a delta", path=source)
        try:
            if delta is not None and base is not None:
                written = _write_delta(state, target, base, delta, work, max_shard_bytes, verify, dry_run, metadata_memory_bytes)
            else:
                written = _write(state, target, to, work, codec, fingerprints, max_shard_bytes, verify, dry_run, version,
                                 gguf_metadata or {})
        except OSError as error:
            if isinstance(error, Error):
                raise
            raise io_error(error, path) from error
        tensors = state.tensors.values()
        return Report(
            opened.format,
            to,
            path,
            len(tensors),
            sum(map(size_of, tensors)),
            written.files,
            dropped,
            state.notes,
            opened.digest,
            sum(not tensor.is_protected for tensor in tensors),
            written.verified_bytes,
            written.needed_bytes,
            time.monotonic() - began,
            state.left_out,
            opened.missing,
        )


def _format_of(path: str) -> Format:
    """Returns the format for the suffix of a path.

    Raises InvalidArgumentError if the suffix belongs to a format that is not an output format.
    """
    suffix = os.path.splitext(path.rstrip("/"))[1].lower()
    if suffix in _NOT_WRITTEN:
        raise InvalidArgumentError(
            f"destination ends in {suffix}, which is not an output format; expected one of {', '.join(FORMATS)} "
            f"in to (--to), or the suffix {', '.join(_OF_SUFFIX)}",
            path=path,
        )
    return _OF_SUFFIX.get(suffix, "sealpoint")


def _note_attributes(state: State, to: str) -> None:
    if state.attributes or any(map(attributes_of, state.tensors.values())):
        state.notes.append(f"attributes cannot be stored in the format {to}")


def _check_objects(state: State, to: str) -> None:
    """Removes the objects that only this library uses, if the format ``to`` cannot store objects.

    Raises UnsupportedError for any other object.
    """
    if to in ("sealpoint", "safetensors", "hf", "delta"):
        return
    for name in (VERSIONS, PARAMETERS, UNITED):
        if state.objects.pop(name, None) is not None:
            state.notes.append(f"{name}, which sealpoint.torch needs to load into changed models, cannot be stored in the format "
                               f"{to}")
    for name, (media_type, _) in state.objects.items():
        if to == "gguf" and name == _gguf_write.METADATA:
            continue
        raise UnsupportedError(f"an object ({media_type}) cannot be stored in the format {to}; drop it by its name", object=name)


def _write(
    state: State, path: str, to: str, work: _copy.Work, codec: Codec, fingerprints: bool, max_shard_bytes: int, verify: bool,
    dry_run: bool, version: str | None, keys: _gguf_write.Keys,
) -> _Written:
    if to == "hdf5":
        return _write_hdf5(state, path, work, verify, dry_run)
    is_sealpoint = to == "sealpoint"
    # Checked before the layout is made, because a tensor with elements that share memory may have any size.
    _destination.check_room(path, sum(map(size_of, state.tensors.values())))
    layout = None if is_sealpoint else _lay_out(state, os.path.basename(path), to, max_shard_bytes, version, keys)
    needed_bytes = _copy.sealpoint_bytes(state) if layout is None else layout.total_bytes
    _destination.check_room(path, needed_bytes)
    files = [] if layout is None else [FileInfo(*file, "") for file in zip(layout.names, layout.sizes, strict=True)]
    if dry_run:
        return _Written(files, needed_bytes, None)
    with _writing(state, path, layout, to, work, codec, fingerprints) as written:
        if not verify and not is_sealpoint:
            return _Written(files, needed_bytes, None)
        with open_source(written) as made:
            verified = _verify(state, made, to, work) if verify else None
            return _Written(made.files if is_sealpoint else files, needed_bytes, verified)


def _write_hdf5(state: State, path: str, work: _copy.Work, verify: bool, dry_run: bool) -> _Written:
    needed_bytes = sum(map(size_of, state.tensors.values()))
    _destination.check_room(path, needed_bytes)
    content = _hdf5_write.content_of(state)
    if dry_run:
        return _Written([], needed_bytes, None)
    with _destination.publishing(path, is_directory=False) as temporary:
        _hdf5_write.write(state, content, temporary, work)
        verified = _hdf5_write.verify(state, content, temporary, work) if verify else None
        files = [FileInfo(os.path.basename(path), os.path.getsize(temporary), "")]
    return _Written(files, needed_bytes, verified)


def _write_delta(
    state: State, path: str, base: str, versions: _delta_write.Versions, work: _copy.Work, max_shard_bytes: int, verify: bool,
    dry_run: bool, metadata_memory_bytes: int | None,
) -> _Written:
    with open_source(base, metadata_memory_bytes=metadata_memory_bytes) as old:
        _delta_write.check_base(state, old)
        if dry_run:
            return _Written([], 0, None)
        with _destination.publishing(path, is_directory=True) as temporary:
            files = _delta_write.write_delta(state, old, versions, temporary, work, max_shard_bytes)
            if not verify:
                return _Written(files, 0, None)
            with open_source(temporary, base=base, metadata_memory_bytes=metadata_memory_bytes) as made:
                return _Written(files, 0, _copy.compare(state, made, work))


@contextlib.contextmanager
def _writing(
    state: State, path: str, layout: Layout | None, to: str, work: _copy.Work, codec: Codec, fingerprints: bool
) -> Iterator[str]:
    """Writes the output and yields its path. If the block succeeds, the output becomes the destination; if not, it is removed."""
    is_directory = layout is None or to in _DIRECTORIES
    if _paths.is_local(path):
        with _destination.publishing(path, is_directory, may_be_empty=layout is None) as temporary:
            if layout is None:
                _write_sealpoint(state, temporary, work, codec, fingerprints)
            else:
                paths = [os.path.join(temporary, name) for name in layout.names] if is_directory else [temporary]
                _copy.write_files(layout, _copy.LocalOutput(paths, layout.sizes), work)
            yield temporary
    elif layout is None:  # a checkpoint exists only when its marker exists
        _write_sealpoint(state, path, work, codec, fingerprints)
        yield path
    else:
        with _destination.storing(path, layout.names, is_directory) as files:
            _copy.write_files(layout, _copy.StoredOutput(files), work)
            yield path


def _write_sealpoint(state: State, path: str, work: _copy.Work, codec: Codec, fingerprints: bool) -> None:
    # The entries that the library itself adds are left out.
    kept = {key: value for key, value in state.provenance.items() if not key.startswith("sealpoint.")}
    _copy.write_sealpoint(state, path, work, codec, fingerprints, {**kept, "convert.from": state.format})
    if state.format == "megatron":  # Megatron recognizes a checkpoint, and its loader, by this file
        config = json.dumps({"sharded_backend": "sealpoint", "sharded_backend_version": 1}).encode()
        _sealpoint.write_file(os.path.join(path, MARKER), config)


def _lay_out(
    state: State, name: str, to: str, max_shard_bytes: int, version: str | None, keys: _gguf_write.Keys
) -> Layout:
    if to == "gguf":
        return _gguf_write.lay_out_gguf(state, name, keys)
    if to == "safetensors":
        return _safetensors_write.lay_out_file(state, name)
    if to in ("hf", "delta"):
        return _safetensors_write.lay_out_directory(state, max_shard_bytes, version)
    if to == "torch":
        return _torch_write.lay_out_torch(state, name)
    return _torch_write.lay_out_dcp(state) if to == "dcp" else _torch_write.lay_out_megatron(state)


def _verify(state: State, made: State, to: str, work: _copy.Work) -> int:
    """Compares destination and source. Raises CorruptError, and MismatchError if a value differs."""
    if made.rank_values != state.rank_values:
        raise MismatchError("values of ranks in the destination differ from the values in the source", path=made.path)
    expected = dict(flatten(_as_pickled(state.tree) if to in _PICKLED else state.tree))
    if to == "dcp":  # DCP stores a tensor twice if it has two names
        places = [(path, node["name"]) for path, node in expected.items() if _is_tensor(node)]
        tensors = {text_of(path): state.tensors[name] for path, name in places}
        state = dataclasses.replace(state, tensors={**state.tensors, **tensors})
    found = dict(flatten(made.tree))
    for path in sorted({*expected, *found}, key=str):
        a, b = expected.get(path), found.get(path)
        if a != b and not (_is_tensor(a) and _is_tensor(b) and to == "dcp"):
            raise MismatchError(
                "value in the destination differs from the value in the source", path=made.path, object=text_of(path)
            )
    try:
        return _copy.compare(state, made, work)
    except Error as error:
        error.path = error.path or made.path
        raise


def _as_pickled(node: Node) -> Node:
    """Returns a node in the form that a pickle can represent.

    For an enumeration member, a pickle contains the value but not the name of the member.
    """
    if isinstance(node, list):
        return [_as_pickled(child) for child in node]
    if not isinstance(node, dict):
        return node
    is_enum = node.get("$") == "enum"
    return {key: _as_pickled(child) for key, child in node.items() if not (is_enum and key == "name")}


def _is_tensor(node: object) -> bool:
    return isinstance(node, dict) and node.get("$") == "tensor"
