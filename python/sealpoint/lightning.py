# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Lightning: those that one process saves whole, as under DDP or without ranks.

    trainer = Trainer(plugins=[SealpointCheckpointIO()])
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import threading
from importlib import import_module
from typing import Any

import torch

from sealpoint._arguments import local_path_of
from sealpoint._errors import AlreadyExistsError, InvalidArgumentError, UnsupportedError
from sealpoint._save import Codec
from sealpoint.torch import _directories
from sealpoint.torch._load import load_full
from sealpoint.torch._options import SaveKeywords
from sealpoint.torch._save import save


# Lightning's AsyncCheckpointIO saves on a thread, while the trainer deletes what that may still be writing.
_turn = threading.RLock()
os.register_at_fork(after_in_child=lambda: globals().update(_turn=threading.RLock()))


def _base() -> Any:
    """The interface, of whichever package the program uses."""
    names = ("lightning.fabric", "lightning_fabric")
    is_old = "pytorch_lightning" in sys.modules and "lightning" not in sys.modules
    errors = []
    for name in reversed(names) if is_old else names:
        try:
            return import_module(f"{name}.plugins.io.checkpoint_io").CheckpointIO
        except ImportError as error:
            errors.append(str(error))
    raise ImportError(f"sealpoint.lightning needs lightning or pytorch_lightning, which cannot be imported: {errors[0]}")


class SealpointCheckpointIO(_base()):  # type: ignore[misc]
    """Saves the dict of a Trainer as a checkpoint of this library: a directory where Lightning has a file.

    Strategies that shard a checkpoint over ranks (``FSDPStrategy(state_dict_type="sharded")``, ``ModelParallelStrategy``)
    do not use plugins of this kind.

    Args:
        replace: a checkpoint under the same name, such as ``last.ckpt``, is replaced: the new one is durable before the
            old one goes. Off: it is an AlreadyExistsError.
        allow_pickle: values without a form of their own are pickled; else they are errors that name their path.
        codec: how elements are compressed.
        threads: that read and verify.
    """

    def __init__(self, *, replace: bool = True, allow_pickle: bool = False, codec: Codec = "none", threads: int = 1) -> None:
        super().__init__()
        self._replace, self._allow_pickle, self._codec, self._threads = replace, allow_pickle, codec, threads

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """One process calls it. Errors: those of ``sealpoint.torch.save``; there is no new checkpoint then."""
        if storage_options is not None:
            raise InvalidArgumentError(f"storage_options is a {type(storage_options).__name__}, expected None")
        target = local_path_of(path, "path", "Lightning replaces and links checkpoints by their names")
        step = checkpoint.get("global_step")
        options: SaveKeywords = {
            "no_dist": True, "allow_pickle": self._allow_pickle, "codec": self._codec,
            "step": step if type(step) is int else None,
        }
        with _turn:
            self._save(checkpoint, target, options)

    def _save(self, checkpoint: dict[str, Any], target: str, options: SaveKeywords) -> None:
        if not os.path.lexists(target):
            save(checkpoint, target, **options)
            return
        if not self._replace or not (os.path.isfile(target) or _directories.is_checkpoint(target)):
            raise AlreadyExistsError("something is there already", path=target)
        beside = f"{target}.new-{secrets.token_hex(4)}"
        save(checkpoint, beside, **options)
        self.remove_checkpoint(target)  # after a crash here the new one has its other name
        os.rename(beside, target)
        handle = os.open(os.path.dirname(os.path.abspath(target)), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        """The whole dict, as new tensors. A file of torch.save is read as Lightning does. Any processes call it.

        Args:
            map_location: a device; functions and mappings of devices are an error.
            weights_only: has no meaning here, as there is no pickle.
        """
        target = local_path_of(path, "path", "Lightning replaces and links checkpoints by their names")
        if os.path.isfile(target):
            return torch.load(  # type: ignore[no-any-return]
                target, map_location=map_location or "cpu", weights_only=True if weights_only is None else weights_only
            )
        if map_location is not None and not isinstance(map_location, str | torch.device):
            raise UnsupportedError(f"map_location is a {type(map_location).__name__}, expected a device", path=target)
        found: dict[str, Any] = load_full(
            target, device=map_location or "cpu", allow_pickle=self._allow_pickle, threads=self._threads
        )
        return found

    def remove_checkpoint(self, path: Any) -> None:
        """Takes away a checkpoint, its marker first, or a file; waits for a save that is under way. One process calls it."""
        target = local_path_of(path, "path", "Lightning replaces and links checkpoints by their names")
        with _turn:
            if os.path.isfile(target) or os.path.islink(target):
                os.unlink(target)
            elif os.path.isdir(target):
                _directories.remove(target)
                shutil.rmtree(target)


__all__ = ["SealpointCheckpointIO"]
