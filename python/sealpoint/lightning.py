# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for Lightning, for strategies in which one process saves everything, such as DDP or a single device.

    trainer = Trainer(plugins=[SealpointCheckpointIO()])
"""

from __future__ import annotations

import io
import logging
import os
import secrets
import shutil
import sys
import threading
from importlib import import_module
from typing import Any

import torch

from sealpoint import _directories, _sealpoint, _uri, _url_files
from sealpoint._arguments import path_of
from sealpoint._checkpoint import open_own
from sealpoint._errors import AlreadyExistsError, InvalidArgumentError, UnsupportedError
from sealpoint._options import Frozen, StoreOptions
from sealpoint._save import Codec
from sealpoint.torch._arguments import check
from sealpoint.torch._load import load_full
from sealpoint.torch._options import SaveKeywords
from sealpoint.torch._save import save

_log = logging.getLogger("sealpoint")
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


def _is_file(path: str) -> bool:
    return _url_files.is_file(path) if _uri.is_uri(path) else os.path.isfile(path)


def _content(path: str) -> Any:
    """A file of torch.save, for torch.load."""
    if not _uri.is_uri(path):
        return path
    folder, name = _uri.split(path)
    return io.BytesIO(_uri.read(folder, name, _uri.sizes_of(folder)[name]))


def _is_kept(path: str) -> bool:
    return not _is_file(path) and "KEEP" in _uri.list_names(path)


def _remove_from_store(path: str) -> None:
    """The marker of a checkpoint goes first, and then whatever is there."""
    folder, name = _uri.split(path)
    if _url_files.is_file(path):
        _sealpoint.remove_files(folder, [name])
    _directories.remove(path)
    if names := _uri.list_names(path):
        _sealpoint.remove_files(path, names)


class SealpointCheckpointIO(_base()):  # type: ignore[misc]
    """Saves the checkpoint dict of a Trainer as a checkpoint of this library: a directory in place of Lightning's file.

    Paths may be URLs of object stores, which Lightning lists via fsspec (docs/guides/frameworks.md). Strategies that shard
    checkpoints over ranks (``FSDPStrategy(state_dict_type="sharded")``, ``ModelParallelStrategy``) do not use such plugins.

    Args:
        replace: Replace a checkpoint of the same name, such as ``last.ckpt``. The new one is durable before the old one is
            removed. False: raise AlreadyExistsError.
        allow_pickle: Pickle values of other types. False: raise an error with their path.
        codec: Compression of elements.
        threads: Number of threads that read and verify.
        frozen, full_every: As for ``sealpoint.torch.save``: unchanged tensors are linked from the last saved or loaded
            checkpoint. Names are paths in the dict, such as "state_dict.base.*".

    Raises:
        InvalidArgumentError: an option is invalid.
    """

    def __init__(self, *, replace: bool = True, allow_pickle: bool = False, codec: Codec = "none", threads: int = 1,
                 frozen: Frozen = (), full_every: int = StoreOptions.full_every) -> None:
        super().__init__()
        check(frozen=frozen, full_every=full_every)
        self._replace, self._allow_pickle, self._codec, self._threads = replace, allow_pickle, codec, threads
        self._frozen, self._full_every = frozen, full_every
        self._latest: tuple[str, int, str] | None = None  # what was last saved or loaded, if something is frozen

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Saves the checkpoint. One process calls it. Raises as ``sealpoint.torch.save`` does; then no new checkpoint exists."""
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
        is_url = _uri.is_uri(target)
        if not (_url_files.Os().path.exists(target) if is_url else os.path.lexists(target)):
            self._note(save(checkpoint, target, **options), target)
            return
        if not self._replace or not (_is_file(target) or _directories.is_checkpoint(target)):
            raise AlreadyExistsError("something is there already", path=target)
        if _is_kept(target):
            raise AlreadyExistsError("a KEEP file pins the checkpoint that is there: it is not replaced", path=target)
        beside = f"{target}.new-{secrets.token_hex(4)}"
        info = save(checkpoint, beside, **options)
        self._note(info, beside)
        self.remove_checkpoint(target)  # after a crash here the new one has its other name
        if is_url:  # in which nothing can be renamed
            options["parent"] = self._latest
            self._note(save(checkpoint, target, **options), target)
            self.remove_checkpoint(beside)
            return
        os.rename(beside, target)
        self._note(info, target)
        handle = os.open(os.path.dirname(os.path.abspath(target)), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _note(self, checkpoint: Any, path: str) -> None:
        """What the next save follows, and may link from."""
        if self._frozen:
            self._latest = (checkpoint.attempt, checkpoint.sequence, _uri.absolute(path))

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        """Loads the whole dict into new tensors. Reads a torch.save file as Lightning does. Any process may call it.

        Args:
            map_location: A device. Functions and mappings are not supported.
            weights_only: Ignored, because no pickle is read.
        """
        target = path_of(path)
        if _is_file(target):
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
        """Removes a checkpoint, marker first, or a file, after waiting for a running save. One process calls it.

        A checkpoint pinned by a KEEP file stays, with a warning.
        """
        target = path_of(path)
        with _turn:
            if _is_kept(target):
                _log.warning("%s is not deleted: a KEEP file pins it", target)
            elif _uri.is_uri(target):
                _remove_from_store(target)
            elif os.path.isfile(target) or os.path.islink(target):
                os.unlink(target)
            elif os.path.isdir(target):
                _directories.remove(target)
                shutil.rmtree(target)


__all__ = ["SealpointCheckpointIO"]
