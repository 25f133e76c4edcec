# SPDX-License-Identifier: Apache-2.0
"""Weights for vLLM, under Hugging Face names.

    sealpoint.vllm.register()
    LLM("model", load_format="sealpoint", model_loader_extra_config={"checkpoint": "run", "rename": {"model.*": "*"}})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import torch

from sealpoint._checkpoint import Checkpoint, Path
from sealpoint._checkpoint import open as open_checkpoint
from sealpoint._errors import InvalidArgumentError, NotFoundError, UnsupportedError
from sealpoint._patterns import pattern, renamer
from sealpoint.torch._dtypes import DTYPE_OF
from sealpoint.torch._slices import SliceReport, load_slices, whole_tensors

FORMAT = "sealpoint"
_OPTIONS = {"checkpoint", "rename", "threads", "slices"}


def weights(
    path: Path, *, rename: Mapping[str, str] | None = None, threads: int | None = None
) -> Iterator[tuple[str, torch.Tensor]]:
    """Iterates over the tensors of a checkpoint. Each tensor is read and verified when the iterator reaches it.

    Args:
        path: Directory or URL of a checkpoint.
        rename: Maps patterns of names to new names. A ``*`` in the new name stands for the text that the ``*`` of the
            pattern matched. Names that match no pattern are skipped. Default: all tensors, under their stored names.
        threads: Number of threads that read and verify. Default: as for ``sealpoint.open``.

    Raises:
        UnsupportedError: torch has no equivalent of a stored dtype.
        NotFoundError: a pattern matches no stored name.
        InvalidArgumentError: two tensors get the same name.
        Error: as for ``sealpoint.open`` and for reads.

    All errors except read errors are raised before the first tensor is returned.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> from sealpoint.vllm import weights
        >>> _ = sp.save({"model": {"w": torch.ones(2)}}, "checkpoint")
        >>> dict(weights("checkpoint", rename={"model.*": "*"}))
        {'w': tensor([1., 1.])}
    """
    with open_checkpoint(path) as checkpoint:
        yield from whole_tensors(checkpoint, _checked_names(checkpoint, rename), threads)


def load_weights(
    model: Any, path: Path, *, rename: Mapping[str, str] | None = None, threads: int | None = None
) -> SliceReport:
    """Fills a model via its own ``load_weights(iterator)``, and reads only the parts of tensors that this method copies.

    If a tensor is split over tensor-parallel ranks, only this rank's part is read. Every byte read is verified.
    ``model.load_weights`` is called twice: first with tensors that record the copied parts and leave the model unchanged, then with
    tensors that contain these parts. The function falls back to reading whole tensors, as ``weights`` does, and warns with the
    reason, in two cases: the model uses the values of a tensor with several elements during the first call, or it copies different
    elements in the second call than in the first call. Works for any engine whose models have this method, such as SGLang.

    Args:
        model: Model with ``load_weights``.
        path, rename, threads: As for ``weights``.

    Raises:
        Error: as for ``weights``.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> from sealpoint.vllm import load_weights
        >>> class Model(torch.nn.Linear):
        ...     def load_weights(self, weights):
        ...         for name, tensor in weights:
        ...             self.get_parameter(name).data.copy_(tensor)
        >>> _ = sp.save(Model(4, 4).state_dict(), "checkpoint")
        >>> load_weights(Model(4, 4), "checkpoint")
        SliceReport(...)
    """
    with open_checkpoint(path) as checkpoint:
        names = _checked_names(checkpoint, rename)

        own = [*model.parameters(), *model.buffers()] if isinstance(model, torch.nn.Module) else []
        before = [(item, item.data) for item in own]

        def restore() -> bool:
            kept = [(item, data) for item, data in before if _address_of(item) != _address_of(data)]
            for element, data in kept:
                element.data = data
            return not kept

        return load_slices(model.load_weights, checkpoint, names, threads, restore)


def _address_of(tensor: torch.Tensor) -> int:
    try:
        return tensor.data_ptr()
    except RuntimeError:  # it has no memory
        return -1


def _checked_names(checkpoint: Checkpoint, rename: Mapping[str, str] | None) -> dict[str, str]:
    names = _names(list(checkpoint), rename)
    for name in names.values():
        if checkpoint[name].dtype_name not in DTYPE_OF:
            raise UnsupportedError(f"this torch has no dtype {checkpoint[name].dtype_name}", tensor=name)
    return names


def _names(stored: list[str], rename: Mapping[str, str] | None) -> dict[str, str]:
    """Returns the stored name for each new name."""
    if rename is None:
        return {name: name for name in stored}
    new_name, fits = renamer(rename.items()), {text: pattern(text) for text in rename}
    names: dict[str, str] = {}
    for name in stored:
        fitting = [text for text, fit in fits.items() if fit.fullmatch(name)]
        if not fitting:
            continue
        if new_name(name) in names:
            raise InvalidArgumentError(f"it becomes {new_name(name)!r}, as {names[new_name(name)]!r} does", tensor=name)
        names[new_name(name)] = name
    for text, fit in fits.items():
        if not any(fit.fullmatch(name) for name in stored):
            raise NotFoundError(f"{text!r} matches no name")
    return names


def register() -> None:
    """Registers the load format "sealpoint" with vLLM in this process. Call it in each process that loads a model.

    Raises:
        ImportError: vllm cannot be imported.

    Examples:
        >>> from sealpoint.vllm import register
        >>> from vllm.config import LoadConfig
        >>> from vllm.model_executor.model_loader import get_model_loader
        >>> register()
        >>> type(get_model_loader(LoadConfig(load_format="sealpoint"))).__name__
        'SealpointModelLoader'
    """
    try:
        loaders: Any = import_module("vllm.model_executor.model_loader")
    except ImportError as error:
        raise ImportError(f"sealpoint.vllm needs vllm, which cannot be imported: {error}") from error

    @loaders.register_model_loader(FORMAT)
    class SealpointModelLoader(loaders.BaseModelLoader):  # type: ignore[misc]
        """Loads a vLLM model from a checkpoint.

        Members of model_loader_extra_config: ``checkpoint`` is the directory of the checkpoint, if it differs from the directory of
        the model. ``rename`` and ``threads`` are as for ``weights``. ``slices``: True (default) reads only the parts that each rank
        copies (see ``load_weights``); False reads whole tensors.
        """

        def __init__(self, load_config: Any) -> None:
            super().__init__(load_config)
            self._options: dict[str, Any] = dict(load_config.model_loader_extra_config or {})
            if unknown := self._options.keys() - _OPTIONS:
                raise InvalidArgumentError(
                    f"model_loader_extra_config has {min(unknown)!r}, expected {', '.join(sorted(_OPTIONS))}"
                )

        def download_model(self, model_config: Any) -> None:
            """Does nothing: a checkpoint is read in place."""

        def load_weights(self, model: Any, model_config: Any) -> None:
            options = dict(self._options)
            path = options.pop("checkpoint", model_config.model)
            if options.pop("slices", True):
                load_weights(model, path, **options)
            else:
                model.load_weights(weights(path, **options))


__all__ = ["FORMAT", "SliceReport", "load_weights", "register", "weights"]
