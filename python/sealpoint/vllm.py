# SPDX-License-Identifier: Apache-2.0
"""Loads weights of checkpoints into vLLM, under Hugging Face names.

    sealpoint.vllm.register()
    LLM("model", load_format="sealpoint", model_loader_extra_config={"checkpoint": "run", "rename": {"model.*": "*"}})
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Literal

import torch
import torch.distributed as dist

from sealpoint._checkpoint import Checkpoint, Path
from sealpoint._checkpoint import open as open_checkpoint
from sealpoint._errors import InvalidArgumentError, NotFoundError, UnsupportedError
from sealpoint._patterns import pattern, renamer
from sealpoint.fingerprint import TensorFingerprint
from sealpoint.torch._arguments import check
from sealpoint.torch._copies import Expected, Verification, check_verified, verify_copies
from sealpoint.torch._dtypes import DTYPE_OF
from sealpoint.torch._session import session_of, tells_other_ranks
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
            pattern matched. Stored names that match no pattern are skipped. Default: all tensors, under their stored
            names.
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
    tensors that contain these parts. In two cases, this function reads whole tensors, as ``weights`` does, and logs the reason as a
    warning. In the first case, the model uses the values of a tensor with several elements during the first call. In the second
    case, the two calls copy different elements. The function works with any engine that has models with the method
    ``load_weights``, such as SGLang.

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

        return load_slices(model.load_weights, checkpoint, names, threads, _restorer(model))


def _restorer(model: Any) -> Callable[[], bool]:
    """Returns a function that restores the memory of parameters and buffers, and returns True if this memory was unchanged."""
    own = [*model.parameters(), *model.buffers()] if isinstance(model, torch.nn.Module) else []
    before = [(item, item.data) for item in own]

    def restore() -> bool:
        kept = [(item, data) for item, data in before if _address_of(item) != _address_of(data)]
        for element, data in kept:
            element.data = data
        return not kept

    return restore


@tells_other_ranks
def verify(
    model: Any, expected: Path | Checkpoint | Mapping[str, TensorFingerprint], *, rename: Mapping[str, str] | None = None,
    unverified: Literal["error", "allow"] = "error", process_group: dist.ProcessGroup | None = None, no_dist: bool = False,
) -> Verification:
    """Proves that a model holds the expected weights, with any tensor parallelism. Collective: all ranks call it.

    Calls ``model.load_weights`` with tensors that record the memory into which each part of a tensor is copied. The call writes
    nothing. The fingerprints of these parts are summed over the ranks, and the sums are compared with the expected fingerprints.
    Fused, transposed and divided weights therefore need no mapping. Each rank reads its weights once; about 100 bytes per part are
    exchanged. Replicas on several ranks are compared with each other.

    Args:
        model: Model with ``load_weights``, after its weights were loaded. Weights that were quantized or repacked after loading are
            reported as different or unverified.
        expected: Checkpoint, or fingerprints such as the result of ``sealpoint.torch.fingerprints`` in the trainer. The value must
            be the same on all ranks. Rank 0 reads tensors of a checkpoint that have no stored fingerprint, or that the model holds
            in a different dtype.
        rename: As for ``weights``.
        unverified: "error" raises an error if some tensor or parameter cannot be compared; "allow" returns the reasons.
        process_group: Ranks that hold the model together. Default: all ranks.
        no_dist: Verify only the model of this process. Other processes do not call the function.

    Returns:
        A Verification, which is the same on all ranks.

    Raises:
        CorruptError: elements differ from the expected elements, or differ between ranks. The error names the tensors.
        UnsupportedError: a tensor was not compared, because the loader computes with the tensor, drops some of its elements, or
            raises an error. Also raised if the loader copies nothing into a parameter.
        Error: as for ``weights``.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> from sealpoint.vllm import verify
        >>> class Model(torch.nn.Linear):
        ...     def load_weights(self, weights):
        ...         for name, tensor in weights:
        ...             self.get_parameter(name).data.copy_(tensor)
        >>> model = Model(4, 4)
        >>> verify(model, sp.fingerprints(model.state_dict())).verified
        ('bias', 'weight')
    """
    with contextlib.ExitStack() as opened, session_of(process_group, is_alone=no_dist).call("verify") as call:

        def make() -> tuple[Expected, list[str]]:
            check(unverified=unverified)
            source = expected
            if not isinstance(source, Mapping):
                source = opened.enter_context(open_checkpoint(source))
            return Expected(source, stored_names(list(source), rename)), [] if rename is None else list(rename)

        own = dict(model.named_parameters()) if isinstance(model, torch.nn.Module) else {}
        result, differing = verify_copies(call, make, lambda weights: model.load_weights(weights), own, _restorer(model))
        check_verified(result, differing, allow_unverified=unverified == "allow")
        return result


class WorkerExtension:
    """Adds ``sealpoint_verify`` to the workers of vLLM.

        llm = LLM("model", worker_extension_cls="sealpoint.vllm.WorkerExtension")
        llm.collective_rpc("sealpoint_verify", args=("run/step-1000", {"model.*": "*"}))

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> from sealpoint.vllm import WorkerExtension
        >>> class Model(torch.nn.Linear):
        ...     def load_weights(self, weights):
        ...         for name, tensor in weights:
        ...             self.get_parameter(name).data.copy_(tensor)
        >>> model = Model(4, 4)
        >>> class Worker(WorkerExtension):  # made by vLLM
        ...     def get_model(self):
        ...         return model
        >>> Worker().sealpoint_verify(sp.fingerprints(model.state_dict())).verified
        ('bias', 'weight')
    """

    def sealpoint_verify(
        self, expected: Path | Mapping[str, TensorFingerprint], rename: Mapping[str, str] | None = None,
        unverified: Literal["error", "allow"] = "error",
    ) -> Verification:
        """Calls ``verify`` with the worker's model. All workers call it."""
        worker: Any = self
        return verify(worker.get_model(), expected, rename=rename, unverified=unverified)


def _address_of(tensor: torch.Tensor) -> int:
    try:
        return tensor.data_ptr()
    except RuntimeError:  # the tensor has no memory
        return -1


def _checked_names(checkpoint: Checkpoint, rename: Mapping[str, str] | None) -> dict[str, str]:
    names = stored_names(list(checkpoint), rename)
    for name in names.values():
        if checkpoint[name].dtype_name not in DTYPE_OF:
            raise UnsupportedError(f"this torch has no dtype {checkpoint[name].dtype_name}", tensor=name)
    return names


def stored_names(stored: list[str], rename: Mapping[str, str] | None) -> dict[str, str]:
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
    """Registers the load format "sealpoint" with vLLM in this process. Call this function in each process that loads a model.

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

        Members of model_loader_extra_config: ``checkpoint`` is the directory of the checkpoint. It is needed only if this directory
        differs from the directory of the model. ``rename`` and ``threads`` are as for ``weights``. ``slices``: True (default) reads
        only the parts that each rank copies (see ``load_weights``); False reads whole tensors.
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


__all__ = ["FORMAT", "SliceReport", "Verification", "WorkerExtension", "load_weights", "register", "verify", "weights"]
