# SPDX-License-Identifier: Apache-2.0
"""The checkpoint manager for torchtitan."""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import torch.distributed as dist

from sealpoint import _directories, _paths, _url_files
from sealpoint._arguments import path_of
from sealpoint._checkpoint import open_own as open_checkpoint
from sealpoint._errors import Error, UnsupportedError
from sealpoint._keywords import refuse_unknown
from sealpoint._native import check_one, native_files
from sealpoint._option_table import names_of
from sealpoint._ranks import staged_copies
from sealpoint._replacement import Run, provenance_of, removal_of, remove_replaceable
from sealpoint._save import Frozen
from sealpoint._series import Series
from sealpoint.torch._arguments import check
from sealpoint.torch._contract import Contract
from sealpoint.torch._load import load
from sealpoint.torch._options import SaveKeywords
from sealpoint.torch._save import save, save_async
from sealpoint.torch._session import session_of
from sealpoint.torchtitan._options import Settings

try:
    _titan: Any = import_module("torchtitan")
except ImportError as error:
    raise ImportError(f"sealpoint.torchtitan needs torchtitan, which cannot be imported: {error}") from error
# Since 0.3 the manager is chosen by the class of its configuration.
_HAS_CONFIG = find_spec("torchtitan.components.checkpointer") is not None
_native: Any = import_module(f"torchtitan.components.{'checkpointer.dcp' if _HAS_CONFIG else 'checkpoint'}")
_tools: Any = import_module("torchtitan.tools.utils")
_STEP = re.compile(r"step-(\d+)")


@dataclass(kw_only=True)
class Options(Settings):
    """Additional settings; see ``SealpointCheckpointManager``.

    Examples:
        >>> from sealpoint.torchtitan import Options
        >>> Options(codec="zstd", keep_local=2).keep_local
        2
    """


class SealpointCheckpointManager(_native.CheckpointManager):  # type: ignore[misc]
    """A torchtitan checkpoint manager that writes Sealpoint checkpoints to ``step-N`` in its folder.

    All torchtitan settings keep their meaning. The modes ``async`` and ``async_with_pinned_mem`` are equivalent. Both save in the
    background with private process groups, and store the state at the time of the call. A load considers only committed steps. The
    newest ``keep_latest_k`` committed steps are kept; the deletion of a step removes its marker first. DCP checkpoints can still be
    loaded and are never deleted. torchtitan itself writes Hugging Face exports. The folder and ``initial_load_path`` may be URLs of
    object stores.

    Additional settings:
        frozen: As for ``sealpoint.torch.save``. Unchanged tensors are linked from the newest step in the folder. Pass
            "learned" as a one-element list, because the command line accepts only lists.
        staged: Directory on a node-local disk. A save is first committed in this directory, in a subdirectory for its
            folder. It is then copied to the folder in the background. ``load`` first finishes the promotions of an
            earlier job. If a promotion fails, the error is logged, and the next save tries the promotion again.
        replace: Replace an existing step, including a DCP checkpoint, unless a KEEP file pins it. If False, replace
            only steps that follow the step from which this run resumed, for example after a rollback. Any other
            existing step raises AlreadyExistsError.
        convert: As for ``sealpoint.torch.load``; "widen" allows a run to start from a bf16 export.
        codec: As for ``sealpoint.save``.
        compare_replicas, allow_pickle, writer_ranks, full_every, keep_local: As for ``sealpoint.torch.save``.
        threads: As for ``sealpoint.torch.load``.

    Raises:
        InvalidArgumentError: a setting is invalid.

    Examples:
        >>> from sealpoint.torchtitan import SealpointCheckpointManager
        >>> checkpoint = SealpointCheckpointManager.Config(enable=True, interval=100, staged="/tmp/sealpoint")
        >>> checkpoint.interval, checkpoint.staged  # config.checkpoint = checkpoint
        (100, '/tmp/sealpoint')
    """

    # For torchtitan versions in which a manager has no configuration class; see ``enable``.
    options = Options()
    async_mode: Any
    _storage: Any

    if _HAS_CONFIG:

        @dataclass(kw_only=True, slots=True)
        class Config(_native.CheckpointManager.Config, Settings):  # type: ignore[misc]
            """The settings of torchtitan's manager, and the additional settings."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = inspect.signature(_native.CheckpointManager.__init__).bind(self, *args, **kwargs).arguments
        config = given["config" if _HAS_CONFIG else "checkpoint_config"]
        _paths.local(given.get("base_folder", ""), "dump_folder", "torchtitan writes logs and traces there, too; "
                   "checkpoint.folder may be a URL")
        super().__init__(*args, **kwargs)
        if _url_files.is_url(config.folder):
            self.folder = path_of(config.folder, "checkpoint.folder")
        if _HAS_CONFIG:
            self.options = Options(**{name: getattr(config, name) for name in vars(Options())})
        check(**{**vars(self.options), "frozen": self._frozen})
        self._has_storage = hasattr(self, "_storage")
        if self._has_storage:  # a CheckpointStorage, of versions later than 0.3
            self._storage = _url_files.OsPath(self._storage)
        self._purge: threading.Thread | None = None
        self._run = Run()  # of rank 0
        if getattr(self, "enable", False) and self.async_mode != _native.AsyncMode.DISABLED:
            self.async_mode = _native.AsyncMode.ASYNC  # this library makes the copy, in pinned memory if there is a device

    @property
    def _frozen(self) -> Frozen:
        return "learned" if list(self.options.frozen) == ["learned"] else self.options.frozen

    def dcp_save(self, state_dict: dict[str, Any], checkpoint_id: str, async_mode: Any,
                 enable_garbage_collection: bool = False, to_hf: bool = False) -> Any:
        """Saves the state of all ranks. Returns a SaveFuture if ``async_mode`` requests a background save, and None otherwise.

        Collective: all ranks call it. torchtitan calls it with its own arguments. Raises as ``sealpoint.torch.save`` does.
        """
        if to_hf:
            _paths.local(checkpoint_id, "the folder", "exports for Hugging Face are files that torchtitan writes")
            return super().dcp_save(state_dict, checkpoint_id, async_mode, enable_garbage_collection, to_hf)
        staged_copies.log_failed_promotions(self.options.staged, _paths.absolute(self.folder))
        found = _STEP.fullmatch(_paths.split(checkpoint_id)[1])
        parent, replaced = self._replace(checkpoint_id)
        given = {name: value for name, value in vars(self.options).items() if name in names_of("torch.save")}
        options = cast(SaveKeywords, {
            **given, "frozen": self._frozen, "step": None if found is None else int(found[1]), "parent": parent,
            "provenance": provenance_of(replaced),
        })  # fmt: skip
        result = None
        if async_mode == _native.AsyncMode.DISABLED:
            info = save(state_dict, checkpoint_id, **options)
            self._note_save(info, checkpoint_id)
        else:
            result = save_async(state_dict, checkpoint_id, **options)
            result.add_done_callback(lambda future: self._end(future, checkpoint_id))
        if enable_garbage_collection:
            _tools.GarbageCollection.collect("GC collection invoked by checkpointer.")
        return result

    def _end(self, future: Any, checkpoint_id: str) -> None:
        """Records the checkpoint at the end of a background save."""
        if future.exception() is None:
            self._note_save(future.result(), checkpoint_id)

    def _note_save(self, info: Any, checkpoint_id: str) -> None:
        """Records the new checkpoint. Each rank calls it after the commit."""
        if dist.get_rank() == 0:
            self._run.note_save(info.attempt, info.sequence, checkpoint_id)
            if self.options.staged is not None:
                return  # the promotion removes leftovers
            _directories.remove_leftovers(checkpoint_id)

    def dcp_load(self, state_dict: dict[str, Any], checkpoint_id: str, from_hf: bool, from_quantized: bool) -> None:
        """Fills ``state_dict``. Collective: all ranks call it. Raises as ``sealpoint.torch.load`` does."""
        if from_hf or not self._is_ours(checkpoint_id):
            return super().dcp_load(state_dict, checkpoint_id, from_hf, from_quantized)  # type: ignore[no-any-return]
        load(state_dict, checkpoint_id, contract=Contract.partial(), convert=self.options.convert,
             allow_pickle=self.options.allow_pickle, threads=self.options.threads)
        if _native.MODEL in self.states:
            self.states[_native.MODEL].load_state_dict(state_dict)
        return None

    def _is_ours(self, checkpoint_id: str) -> bool:
        """Tells whether this library must load the checkpoint. Records the checkpoint if it is in this manager's folder."""

        def look() -> bool:
            check_one(checkpoint_id)
            is_own = _directories.is_checkpoint(checkpoint_id)
            if not is_own:
                _paths.local(checkpoint_id, "the checkpoint to "
                                            "load", "there is no checkpoint of this library, and torchtitan reads its own "
                                                    "checkpoints only from file systems")
            if is_own and _paths.split(checkpoint_id)[0] == _paths.absolute(self.folder):
                with open_checkpoint(checkpoint_id) as checkpoint:
                    self._run.note_load(checkpoint.attempt, checkpoint.sequence, path_of(checkpoint_id))
            return is_own

        with session_of(None).call("look at", checkpoint_id) as call:
            return bool(call.run_on_first(look))

    def _replace(self, checkpoint_id: str) -> tuple[tuple[str, int, str] | None, list[Any]]:
        """Removes the checkpoint that the new checkpoint replaces.

        Returns the parent of the new checkpoint, which is the newest checkpoint in its folder. Also returns the result of
        ``remove_replaceable``.
        """

        def find() -> list[Any]:
            entries = Series(_paths.split(checkpoint_id)[0]).list()
            committed = [entry for entry in entries if entry.verdict == "committed"]
            known = [(str(entry.attempt), entry.sequence, entry.path) for entry in committed[:1]]
            if self.options.staged is not None and self._run.latest is not None:
                known.append(self._run.latest)  # its promotion may still be running
            newest = [list(one) for one in sorted(known, key=lambda one: one[1])[-1:]]
            replaced = remove_replaceable(
                checkpoint_id, self._run, replace=self.options.replace,
                obstacle=None if self._run.latest else "this run neither resumed from this directory nor saved into it",
                way_out=f"replace=True of the manager, {removal_of(checkpoint_id)}, or the load_step of a predecessor",
            )
            return [newest, list(replaced)]

        with session_of(None).call("replace", checkpoint_id) as call:
            newest, replaced = call.run_on_first(find)
        staged_copies.remove_replaced(self.options.staged, checkpoint_id, list(replaced), self.options.replace)
        return (tuple(newest[0]) if newest else None), list(replaced)

    def load(self, *args: Any, **kwargs: Any) -> bool:
        """Promotes newer local checkpoints, then loads as torchtitan does. Returns whether a checkpoint was loaded.

        Collective: all ranks call it. Raises as ``sealpoint.torch.load`` does.
        """
        if self.enable:
            staged_copies.finish_promotions(
                session_of(None), self.options.staged, self.options.keep_local, _paths.absolute(self.folder)
            )
        with contextlib.nullcontext() if self._has_storage else _looking_at_urls():
            return bool(super().load(*args, **kwargs))

    def _find_load_step(self, folder: str = "") -> int:
        """Returns the newest committed step, or -1 if there is none. The result is the same on all ranks."""
        path = folder or self.folder

        def find() -> int:
            entries = Series(path).list()
            for entry in entries:
                found = _STEP.fullmatch(entry.name)
                if entry.verdict == "committed" and found is not None:
                    return int(found[1])
            if not _paths.is_local(path):
                _refuse_natives(path)
            return -1

        with session_of(None).call("find the newest of", path) as call:
            step = call.run_on_first(find)
        return int(step) if step >= 0 or not _paths.is_local(path) else int(super()._find_load_step(folder))

    def _purge_stale_checkpoints(self) -> None:
        """Deletes old steps on a thread of rank 0. Failed deletions are retried after the next save."""
        if self.keep_latest_k <= 0 or dist.get_rank() != 0:
            return
        self._wait_for_purge()
        self._purge = threading.Thread(target=self._delete_old, name="sealpoint-purge", daemon=True)
        self._purge.start()

    def _delete_old(self) -> None:
        try:
            Series(self.folder).prune(keep_last=self.keep_latest_k)
        except Error as error:
            warnings.warn(f"old checkpoints were not deleted: {error}", RuntimeWarning, stacklevel=1)

    def _wait_for_purge(self) -> None:
        if getattr(self, "_purge", None) is not None:
            assert self._purge is not None
            self._purge.join()
            self._purge = None

    def close(self) -> None:
        """Waits for running deletions, then closes torchtitan's manager. Each rank calls it."""
        self._wait_for_purge()
        super().close()


@contextlib.contextmanager
def _looking_at_urls() -> Iterator[None]:
    """Lets torchtitan's file system calls accept paths in object stores while the block runs."""
    name = "filesystem" if _HAS_CONFIG else "os"
    native = getattr(_native, name)
    setattr(_native, name, _url_files.OsPath(native) if _HAS_CONFIG else _url_files.Os(native))
    try:
        yield
    finally:
        setattr(_native, name, native)


def _refuse_natives(folder: str) -> None:
    """Raises UnsupportedError if the folder contains torchtitan's own checkpoints, because the run would otherwise start over."""
    for name in _paths.list_names(folder):
        if _STEP.fullmatch(name) and native_files(f"{folder}/{name}"):
            raise UnsupportedError(
                "this is a checkpoint of torchtitan itself, which it reads only from file systems; expected a Sealpoint "
                "checkpoint: copy it to a directory, pass that as initial_load_path, and use another folder",
                path=f"{folder}/{name}",
            )


def enable(**options: Any) -> None:
    """Makes torchtitan 0.2 trainers use ``SealpointCheckpointManager`` with these settings.

    Call it on all ranks, before torchtitan.train is imported or run.

    Args:
        options: The additional settings, as for ``SealpointCheckpointManager``.

    Raises:
        UnsupportedError: torchtitan is 0.3 or later: set ``config.checkpoint`` instead.
        TypeError: an option is unknown. The error suggests the nearest name.

    Examples:
        >>> import sealpoint.torchtitan
        >>> sealpoint.torchtitan.enable(codec="zstd")
        >>> sealpoint.torchtitan.SealpointCheckpointManager.options.codec
        'zstd'
    """
    if _HAS_CONFIG:
        raise UnsupportedError("this version of torchtitan needs SealpointCheckpointManager.Config as config.checkpoint, not "
                               "enable()")
    refuse_unknown("enable()", options, list(vars(Options())))
    SealpointCheckpointManager.options = Options(**options)
    _native.CheckpointManager = SealpointCheckpointManager
    if "torchtitan.train" in sys.modules:
        sys.modules["torchtitan.train"].CheckpointManager = SealpointCheckpointManager  # type: ignore[attr-defined]
