# SPDX-License-Identifier: Apache-2.0
"""Fingerprints prove that two programs hold the same tensors, even in different layouts.

The fingerprint of a tensor has 16 bytes, and depends only on the elements and their indices (spec/fingerprint.md in the sources).
The fingerprints of parts can be added, so each rank computes the fingerprints of its own parts. For example, the weights of a
trainer on 4 ranks can be compared with the weights of an engine on 8 ranks, without gathering any weights.

    saved = sealpoint.fingerprint.of_checkpoint("checkpoint")
    held = sealpoint.torch.fingerprints({"model": model})  # all ranks
    sealpoint.fingerprint.differences(saved, held)  # []
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sealpoint import _sealpoint
from sealpoint._arguments import Path, check
from sealpoint._checkpoint import Checkpoint
from sealpoint._checkpoint import open as open_checkpoint
from sealpoint._errors import NotACheckpointError, NotFoundError
from sealpoint._patterns import pattern
from sealpoint._sealpoint import Fingerprint as Fingerprint

__all__ = ["Fingerprint", "TensorFingerprint", "differences", "of_array", "of_checkpoint"]


class TensorFingerprint(NamedTuple):
    """Identity of a tensor: its dtype (such as "bf16"), its shape, and the fingerprint of its elements."""

    dtype: str
    shape: tuple[int, ...]
    fingerprint: Fingerprint


def of_array(array: Any, *, shape: Sequence[int] | None = None, offset: Sequence[int] | None = None) -> Fingerprint:
    """Computes the fingerprint of an array, or of the box of a tensor that the array holds. Not collective. Reads the array once.

    Args:
        array: As for ``sealpoint.save``, with any strides. If the package was built with CUDA kernels, the fingerprint of dense
            device memory is computed on the device. Other device memory is copied to the host in pieces.
        shape: Shape of the whole tensor. Default: the shape of the array.
        offset: First index of the box in each dimension. Default: zeros.

    Raises:
        InvalidArgumentError: the box is not within the shape.

    Examples:
        >>> import numpy, sealpoint.fingerprint as fingerprint
        >>> w = numpy.arange(6.0).reshape(2, 3)
        >>> top = fingerprint.of_array(w[:1], shape=(2, 3))
        >>> bottom = fingerprint.of_array(w[1:], shape=(2, 3), offset=(1, 0))
        >>> top + bottom == fingerprint.of_array(w)
        True
    """
    check(shape=shape, offset=offset)
    return _sealpoint.array_fingerprint(
        array, None if shape is None else list(shape), None if offset is None else list(offset)
    )


def of_checkpoint(checkpoint: Path | Checkpoint, patterns: Sequence[str] = ()) -> dict[str, TensorFingerprint]:
    """Returns the fingerprints of the tensors of a checkpoint. Not collective.

    Fingerprints that the writer stored (``fingerprints=True`` of a save) are taken from the index. A tensor without a stored
    fingerprint is read and verified, and its fingerprint is computed. Tensors of other formats, such as safetensors, are always
    read.

    Args:
        checkpoint: An open checkpoint, or the location of a checkpoint in any format that ``sealpoint.interop`` reads.
        patterns: Patterns of tensor names (``*`` matches any characters). Default: all tensors.

    Raises:
        NotFoundError: the checkpoint does not exist, or a pattern matches no tensor.
        CorruptError: a tensor that was read is damaged.

    Examples:
        >>> import numpy, sealpoint, sealpoint.fingerprint as fingerprint
        >>> _ = sealpoint.save({"w": numpy.ones(2, "f4")}, "checkpoint", fingerprints=True)
        >>> fingerprint.of_checkpoint("checkpoint")["w"].shape
        (2,)
    """
    if not isinstance(checkpoint, Checkpoint):
        try:
            opened = open_checkpoint(checkpoint)
        except (NotACheckpointError, NotFoundError):
            if (of_other_format := _of_other_format(checkpoint, patterns)) is None:
                raise
            return of_other_format
        with opened:
            return of_checkpoint(opened, patterns)
    found = checkpoint.fingerprints(patterns)
    tensors = {name: checkpoint[name] for name in found}
    return {name: TensorFingerprint(tensor.dtype_name, tensor.shape, found[name]) for name, tensor in tensors.items()}


def _of_other_format(path: Path, patterns: Sequence[str]) -> dict[str, TensorFingerprint] | None:
    """Computes the fingerprints of a checkpoint in a different format. Returns None if there is no such checkpoint at this path."""
    # Imported here, because the import of the converters takes a quarter of the import time of sealpoint.torch.
    from sealpoint.interop import open_source
    from sealpoint.interop._copy import fingerprints_of

    check(patterns=patterns)
    try:
        state = open_source(path, drop_unknown=True)
    except (NotACheckpointError, NotFoundError):
        return None
    try:
        if state.format == "sealpoint":  # the newest checkpoint of a series
            return None
        fits = [pattern(text) for text in patterns]
        for text, fit in zip(patterns, fits, strict=True):
            if not any(map(fit.fullmatch, state.tensors)):
                raise NotFoundError(f"{text!r} matches no name", path=state.path)
        chosen = [tensor for name, tensor in state.tensors.items() if not fits or any(fit.fullmatch(name) for fit in fits)]
        return {
            tensor.name: TensorFingerprint(tensor.dtype, tuple(tensor.shape), found)
            for tensor, found in zip(chosen, fingerprints_of(chosen), strict=True)
        }
    finally:
        state.close()


def differences(first: Mapping[str, TensorFingerprint], second: Mapping[str, TensorFingerprint]) -> list[str]:
    """Returns the sorted names of all tensors that differ in dtype, shape or elements, or that are in only one of the mappings.

    Examples:
        >>> import numpy, sealpoint.fingerprint as fingerprint
        >>> one, two = (
        ...     {"w": fingerprint.TensorFingerprint("f32", (2,), fingerprint.of_array(numpy.full(2, x, "f4")))} for x in (1, 2)
        ... )
        >>> fingerprint.differences(one, two), fingerprint.differences(one, one)
        (['w'], [])
    """
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
