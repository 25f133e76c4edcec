# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for Lightning strategies in which one process saves the whole state, such as DDP or a single device.

    trainer = Trainer(plugins=[SealpointCheckpointIO()])
"""

from __future__ import annotations

import io
import logging
import os
import secrets
import sys
import threading
from importlib import import_module
from typing import Any

import torch

from sealpoint import _directories, _paths, _sealpoint
from sealpoint._arguments import path_of
from sealpoint._checkpoint import open_own
from sealpoint._errors import AlreadyExistsError, InvalidArgumentError, UnsupportedError
from sealpoint._options import StoreOptions
from sealpoint._save import Codec, Frozen
from sealpoint.torch._arguments import check
from sealpoint.torch._load import load_full
from sealpoint.torch._options import SaveKeywords
from sealpoint.torch._save import save

_log = logging.getLogger("sealpoint")
# Lightning's AsyncCheckpointIO saves on a thread. Meanwhile, the trainer may delete a checkpoint that this thread is still writing.
_turn = threading.RLock()
os.register_at_fork(after_in_child=lambda: globals().update(_turn=threading.RLock()))


def _base() -> Any:
    """Returns the interface CheckpointIO from the Lightning package that the program uses."""
    names = ("lightning.fabric", "lightning_fabric")
    is_old = "pytorch_lightning" in sys.modules and "lightning" not in sys.modules
    errors = []
    for name in reversed(names) if is_old else names:
        try:
            return import_module(f"{name}.plugins.io.checkpoint_io").CheckpointIO
        except ImportError as error:
            errors.append(str(error))
    raise ImportError(f"sealpoint.lightning needs lightning or pytorch_lightning, which cannot be imported: {errors[0]}")


def _content(path: str) -> Any:
    """Returns the content of a file that torch.save wrote, in a form that torch.load accepts."""
    if _paths.is_local(path):
        return path
    return io.BytesIO(_sealpoint.read_file(path, sys.maxsize) or b"")


def _is_kept(path: str) -> bool:
    return _paths.kind_of(f"{path}/KEEP") is not None


class SealpointCheckpointIO(_base()):  # type: ignore[misc]
    """Saves the checkpoint dict of a Trainer as a Sealpoint checkpoint: a directory instead of Lightning's single file.

    Paths may be URLs of object stores; Lightning lists their content via fsspec (docs/guides/frameworks.md). Strategies that shard
    checkpoints over ranks (``FSDPStrategy(state_dict_type="sharded")``, ``ModelParallelStrategy``) do not use CheckpointIO plugins.

    Args:
        replace: Replace a checkpoint with the same name, such as ``last.ckpt``. The new checkpoint is durable before the old
            checkpoint is removed. If False, an existing checkpoint raises AlreadyExistsError.
        allow_pickle: Pickle values of types that cannot be stored otherwise. If False, such a value raises an error that names its
            path.
        codec: Compression of elements.
        threads: Number of threads that read and verify. Default: as for ``sealpoint.torch.load``.
        frozen, full_every: As for ``sealpoint.torch.save``. Unchanged tensors are linked from the checkpoint that was saved or
            loaded last. Patterns match paths in the dict, such as "state_dict.base.*".

    Raises:
        InvalidArgumentError: an option is invalid.

    Examples:
        >>> import torch
        >>> from sealpoint.lightning import SealpointCheckpointIO
        >>> plugin = SealpointCheckpointIO()  # Trainer(plugins=[plugin])
        >>> plugin.save_checkpoint({"state_dict": torch.nn.Linear(4, 4).state_dict()}, "last.ckpt")
        >>> sorted(plugin.load_checkpoint("last.ckpt")["state_dict"])
        ['bias', 'weight']
    """

    def __init__(self, *, replace: bool = True, allow_pickle: bool = False, codec: Codec = "none", threads: int | None = None,
                 frozen: Frozen = (), full_every: int = StoreOptions.full_every) -> None:
        super().__init__()
        check(frozen=frozen, full_every=full_every)
        self._replace, self._allow_pickle, self._codec, self._threads = replace, allow_pickle, codec, threads
        self._frozen, self._full_every = frozen, full_every
        self._latest: tuple[str, int, str] | None = None  # the checkpoint last saved or loaded, if frozen is set

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Saves the checkpoint. One process calls this method.

        Raises the errors of ``sealpoint.torch.save``. After an error no new checkpoint exists.

        Args:
            checkpoint: Checkpoint dict of the Trainer.
            path: Directory or URL of the checkpoint.
            storage_options: Must be None.
        """
        if storage_options is not None:
            raise InvalidArgumentError(f"storage_options is a {type(storage_options).__name__}, expected None")
        target = path_of(path)
        step = checkpoint.get("global_step")
        options: SaveKeywords = {
            "no_dist": True, "allow_pickle": self._allow_pickle, "codec": self._codec,
            "step": step if type(step) is int else None,
            "frozen": self._frozen, "full_every": self._full_every, "parent": self._latest,
        }
        with _turn:
            self._save(checkpoint, target, options)

    def _save(self, checkpoint: dict[str, Any], target: str, options: SaveKeywords) -> None:
        kind = _paths.kind_of(target)
        # An object store may still list a directory after its last object was deleted.
        if kind is None or (kind == "directory" and not _paths.is_local(target) and not _paths.list_names(target)):
            self._note(save(checkpoint, target, **options), target)
            return
        if not self._replace or not (kind == "file" or _directories.is_checkpoint(target)):
            raise AlreadyExistsError("something is there already", path=target)
        if _is_kept(target):
            raise AlreadyExistsError("the existing checkpoint is pinned by a KEEP file and is not replaced", path=target)
        beside = f"{target}.new-{secrets.token_hex(4)}"
        info = save(checkpoint, beside, **options)
        self._note(info, beside)
        self.remove_checkpoint(target)  # after a crash here, the new checkpoint keeps its temporary name
        try:
            _sealpoint.publish(beside, target)
            self._note(info, target)
        except UnsupportedError:  # an object store, which cannot rename directories
            options["parent"] = self._latest
            self._note(save(checkpoint, target, **options), target)
            self.remove_checkpoint(beside)

    def _note(self, checkpoint: Any, path: str) -> None:
        """Records the checkpoint as the parent of the next save. The next save may link files from this checkpoint."""
        if self._frozen:
            self._latest = (checkpoint.attempt, checkpoint.sequence, _paths.absolute(path))

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        """Returns the whole checkpoint dict, with new tensors. Files that torch.save wrote are read as Lightning reads them.

        Not collective.

        Args:
            path: Directory or URL of the checkpoint, or a file.
            map_location: A device. Functions and mappings are not supported.
            weights_only: Ignored for Sealpoint checkpoints: the option ``allow_pickle`` of the plugin determines
                whether pickled values are read.

        Raises:
            Error: as for ``sealpoint.torch.load_full``.
        """
        target = path_of(path)
        if _paths.kind_of(target) == "file":
            return torch.load(  # type: ignore[no-any-return]
                _content(target), map_location=map_location or "cpu",
                weights_only=True if weights_only is None else weights_only,
            )
        if map_location is not None and not isinstance(map_location, str | torch.device):
            raise UnsupportedError(f"map_location is a {type(map_location).__name__}, expected a device", path=target)
        found: dict[str, Any] = load_full(
            target, device=map_location or "cpu", allow_pickle=self._allow_pickle, threads=self._threads
        )
        if self._frozen:
            with open_own(target, check_files=False) as checkpoint:
                self._note(checkpoint, target)
        return found

    def remove_checkpoint(self, path: Any) -> None:
        """Waits for a running save, then removes a file or a checkpoint. One process calls this method.

        The marker of a checkpoint is removed first.

        If a KEEP file pins the checkpoint, the checkpoint is not removed and a warning is logged. Raises IoError if the storage
        failed.
        """
        target = path_of(path)
        with _turn:
            if _is_kept(target):
                _log.warning("%s was not deleted: a KEEP file pins it", target)
            else:
                _directories.remove(target, everything=True)


__all__ = ["SealpointCheckpointIO"]
