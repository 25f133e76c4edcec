# SPDX-License-Identifier: Apache-2.0
"""Weights for vLLM, under the names that Hugging Face gives them.

    sealpoint.vllm.register()
    LLM("model", load_format="sealpoint", model_loader_extra_config={"checkpoint": "run", "rename": {"model.*": "*"}})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import torch

from sealpoint._checkpoint import Path
from sealpoint._checkpoint import open as open_checkpoint
from sealpoint._errors import InvalidArgumentError, NotFoundError, UnsupportedError
from sealpoint.interop._select import pattern, renamer
from sealpoint.torch._dtypes import DTYPE_OF
from sealpoint.torch._shards import destination_of

FORMAT = "sealpoint"
_OPTIONS = {"checkpoint", "rename", "threads"}


def weights(
    path: Path, *, rename: Mapping[str, str] | None = None, threads: int = 1
) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a checkpoint, one after the other: each is read and verified when the iterator comes to it.

    Args:
        path: a checkpoint.
        rename: patterns of names, each with the name that it becomes, in which a ``*`` is what that of the pattern was.
            Names that fit none are left out. None: all tensors, under their names.
        threads: that read and verify.

    Errors: those of ``sealpoint.open`` and of reading; UnsupportedError (torch lacks the dtype), NotFoundError (a pattern
    fits no name), InvalidArgumentError (two tensors get one name). All of them but those of reading come before the first.
    """
    with open_checkpoint(path) as checkpoint:
        names = _names(list(checkpoint), rename)
        for name in names.values():
            if checkpoint[name].dtype_name not in DTYPE_OF:
                raise UnsupportedError(f"this torch has no dtype {checkpoint[name].dtype_name}", tensor=name)
        for new_name, name in names.items():
            tensor = torch.empty(checkpoint[name].shape, dtype=DTYPE_OF[checkpoint[name].dtype_name], device="cpu")
            checkpoint.read({name: destination_of(tensor)}, unexpected="allow", threads=threads)
            yield new_name, tensor


def _names(stored: list[str], rename: Mapping[str, str] | None) -> dict[str, str]:
    """Stored names by new ones."""
    if rename is None:
        return {name: name for name in stored}
    new_name, fits = renamer(rename.items()), {text: pattern(text) for text in rename}
    names: dict[str, str] = {}
    for name in stored:
        fitting = [text for text, one in fits.items() if one.fullmatch(name)]
        if not fitting:
            continue
        if new_name(name) in names:
            raise InvalidArgumentError(f"it becomes {new_name(name)!r}, as {names[new_name(name)]!r} does", tensor=name)
        names[new_name(name)] = name
    for text, one in fits.items():
        if not any(one.fullmatch(name) for name in stored):
            raise NotFoundError(f"{text!r} fits no name")
    return names


def register() -> None:
    """Makes the load format known to vLLM, in this process. Each process that loads needs it."""
    try:
        loaders: Any = import_module("vllm.model_executor.model_loader")
    except ImportError as error:
        raise ImportError(f"sealpoint.vllm needs vllm, which cannot be imported: {error}") from error

    @loaders.register_model_loader(FORMAT)
    class SealpointModelLoader(loaders.BaseModelLoader):  # type: ignore[misc]
        """Loads a model of vLLM from a checkpoint.

        Members of model_loader_extra_config: ``checkpoint``, the checkpoint's directory, if it is not that of the model;
        ``rename`` and ``threads`` as for ``weights``.
        """

        def __init__(self, load_config: Any) -> None:
            super().__init__(load_config)
            self._options: dict[str, Any] = dict(load_config.model_loader_extra_config or {})
            if unknown := self._options.keys() - _OPTIONS:
                raise InvalidArgumentError(
                    f"model_loader_extra_config has {min(unknown)!r}, expected {', '.join(sorted(_OPTIONS))}"
                )

        def download_model(self, model_config: Any) -> None:
            """Nothing: a checkpoint is read where it is."""

        def load_weights(self, model: Any, model_config: Any) -> None:
            """Each rank reads all tensors, one at a time, since the model cuts its parts out of them."""
            options = dict(self._options)
            model.load_weights(weights(options.pop("checkpoint", model_config.model), **options))


__all__ = ["FORMAT", "register", "weights"]
