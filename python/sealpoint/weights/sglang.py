# SPDX-License-Identifier: Apache-2.0
"""Versions of weights in SGLang: a custom weight loader, and a hook for ``/pull_weights``.

    engine = sglang.Engine(model_path="model", custom_weight_loader=[sealpoint.weights.sglang.LOADER])
    engine.begin_weight_update()
    engine.update_weights_from_tensor(message("s3://bucket/run/weights", 7), load_format=LOADER)
    engine.end_weight_update()
"""

from __future__ import annotations

import fcntl
import json
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from sealpoint import interop
from sealpoint._arguments import Path, path_of
from sealpoint._errors import InvalidArgumentError
from sealpoint.weights import _chain
from sealpoint.weights._engine import Receiver

LOADER = "sealpoint.weights.sglang.load_weights"
PULL_HOOK = "sealpoint.weights.sglang.before_pull"
PLACE_VARIABLE = "SEALPOINT_WEIGHTS"
_NAME = "sealpoint.weights"


# The options and the receiver of each model.
_receivers: weakref.WeakKeyDictionary[Any, tuple[dict[str, Any], Receiver]] = weakref.WeakKeyDictionary()


def message(
    place: Path, version: int, *, rename: Mapping[str, str] | None = None, verify: str = "error", timeout: float = 600.0,
    threads: int | None = None, host_folder: str | None = None,
) -> list[tuple[str, torch.Tensor]]:
    """Returns the ``named_tensors`` of SGLang's ``update_weights_from_tensor`` that make the engine take a version.

    They have the arguments of this function, and no weights. Pass them with ``load_format=LOADER``.

    Args:
        place: Directory or URL of the versions.
        version: Version to load.
        rename, verify, timeout, threads, host_folder: See docs/guides/weights_engines.md.

    Examples:
        >>> from sealpoint.weights.sglang import message
        >>> message("s3://bucket/run/weights", 7)[0][0]
        'sealpoint.weights'
    """
    options = {"place": path_of(place, "place"), "rename": None if rename is None else dict(rename), "verify": verify,
               "timeout": timeout, "threads": threads, "host_folder": host_folder}  # fmt: skip
    text = json.dumps({"version": version, **options}).encode()
    return [(_NAME, torch.frombuffer(bytearray(text), dtype=torch.uint8))]


def load_weights(model: Any, named_tensors: Sequence[tuple[str, torch.Tensor]]) -> None:
    """Loads the version that a ``message`` names through ``model.load_weights``. Collective: SGLang calls it on all ranks.

    After an error, all ranks have the version that they had, if they got it here.

    Raises InvalidArgumentError, and the errors of ``Follower.update`` and ``sealpoint.vllm.verify``.

    Examples:
        >>> import torch
        >>> from sealpoint.weights import publish
        >>> from sealpoint.weights.sglang import load_weights, message
        >>> class Model(torch.nn.Linear):
        ...     def load_weights(self, weights):
        ...         for name, tensor in weights:
        ...             self.get_parameter(name).data.copy_(tensor)
        >>> _ = publish(Model(4, 4).state_dict(), "weights", 7)
        >>> load_weights(Model(4, 4), message("weights", 7))
    """
    if [name for name, _ in named_tensors] != [_NAME]:
        raise InvalidArgumentError(f"the tensors are {[name for name, _ in named_tensors][:3]}, expected those of message()")
    options = json.loads(bytes(named_tensors[0][1].cpu().tolist()))
    version = options.pop("version")
    held, receiver = _receivers.get(model, ({}, None))
    if receiver is None or held != options:
        if receiver is not None:
            receiver.close()
        _, receiver = _receivers[model] = options, Receiver(**options)
    receiver.update(version, model, model.load_weights)


def before_pull(source_dir: str, target_version: int) -> None:
    """Hook of SGLang's ``--custom-pull-weights-pre-read-hook``: writes a version to where ``/pull_weights`` reads it.

    The version comes from the place in the environment variable SEALPOINT_WEIGHTS. It becomes a full version, the folder
    ``weight_v`` and six digits in ``source_dir``, with safetensors files. One process of each host writes it; a folder that exists
    is not written again. So use a ``source_dir`` of this run, on this host.

    Raises InvalidArgumentError if the variable is not set, NotFoundError, and the errors of ``sealpoint.interop.convert``.

    Examples:
        >>> import numpy, os, sealpoint
        >>> from sealpoint.weights.sglang import before_pull
        >>> _ = sealpoint.save({"w": numpy.ones(2, "f4")}, "weights", series=True, step=7)
        >>> os.environ["SEALPOINT_WEIGHTS"] = "weights"
        >>> before_pull("pulled", 7)
        >>> sorted(os.listdir("pulled/weight_v000007"))
        ['model.safetensors']
    """
    place = os.environ.get(PLACE_VARIABLE)
    if not place:
        raise InvalidArgumentError(f"{PLACE_VARIABLE} is not set, expected the place of the versions")
    os.makedirs(source_dir, exist_ok=True)
    folder = os.path.join(source_dir, f"weight_v{target_version:06d}")
    with open(os.path.join(source_dir, ".sealpoint.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):
            interop.convert(_chain.version_at(place, target_version).entry.path, folder, to="hf", tensors_only=True, verify=True)


__all__ = ["LOADER", "PLACE_VARIABLE", "PULL_HOOK", "before_pull", "load_weights", "message"]
