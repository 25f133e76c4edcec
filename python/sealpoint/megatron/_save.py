# SPDX-License-Identifier: Apache-2.0
"""Functions that save sharded state dicts of Megatron-core."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from sealpoint import _arguments, _directories, _paths, _sealpoint, _tree
from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint._option_table import names_of
from sealpoint._ranks import staged_copies
from sealpoint._ranks.call import Call
from sealpoint._replacement import Run, provenance_of, removal_of, remove_replaceable
from sealpoint._save_future import SaveFuture
from sealpoint._tree import KIND
from sealpoint.megatron import _mcore
from sealpoint.megatron._optimizer import stored
from sealpoint.megatron._options import Options
from sealpoint.megatron._tensors import RunTensor, is_main, regions_to_save
from sealpoint.torch import _shards
from sealpoint.torch._aliases import FirstNames
from sealpoint.torch._options import SaveOptions
from sealpoint.torch._save import save_gathered, save_gathered_async
from sealpoint.torch._session import session_of
from sealpoint.torch._state import Gathered, gather_agreed

COMMON_KEY = "common_state"
# The file in which Megatron records the last saved iteration. Megatron loads this iteration.
TRACKER = "latest_checkpointed_iteration.txt"
_TRACKER_SIZE_MAX_BYTES = 64
_TRAINING = "megatron.training.checkpointing"
_LOOK_EVERY_SECONDS = 0.02
_runs: dict[str, Run] = {}  # by folder of checkpoints


class ShardedState(Gathered):
    """The part of a sharded state dict that one rank saves, as one flat mapping: tensors by key, objects by unique key.

    If ``compare_replicas`` is set, each rank includes its replicas of tensors. The replicas are then compared, and their ranks
    divide the writing. If not, a rank includes only main replicas of tensors. For objects, a rank always includes only main
    replicas.
    """

    def __init__(self, state: Any, rank: int, size: int, options: Options | SaveOptions, names: FirstNames) -> None:
        super().__init__(names)
        encoder = _tree.Encoder(_shards.is_tensor, self._add_tensor, rank, size, options.allow_pickle)
        self._placed: set[Any] = set()
        self._names: set[str] = set()
        nodes: dict[str, Any] = {}
        for sharded in _mcore.dict_utils.nested_values(state):
            if isinstance(sharded, _mcore.mapping.ShardedObject):
                if is_main(sharded):
                    if sharded.unique_key in nodes:
                        raise InvalidArgumentError("two objects have this key", object=sharded.unique_key)
                    data = stored(sharded.data) if sharded.key == COMMON_KEY else sharded.data
                    nodes[sharded.unique_key] = encoder.encode(data, (sharded.unique_key,))
            elif isinstance(sharded, _mcore.mapping.ShardedTensor):
                if is_main(sharded) or (options.compare_replicas and not isinstance(sharded, RunTensor)):
                    self._add_sharded(sharded)
                if is_main(sharded):
                    nodes[sharded.key] = {KIND: "tensor", "name": sharded.key}
            else:
                kind = type(sharded).__name__
                raise InvalidArgumentError(f"a value is a {kind}, expected a ShardedTensor or ShardedObject")
        self.node = nodes
        self.rank_values = encoder.rank_values

    def _add_tensor(self, name: str, value: Any) -> str:
        """Adds a tensor that is nested in an object."""
        if name in self._names:
            raise InvalidArgumentError("duplicate path in the state", tensor=name)
        self._names.add(name)
        self.slots.extend(_shards.source_slots(value, name, self.kept.append))
        return name

    def _add_sharded(self, sharded: Any) -> None:
        regions = regions_to_save(sharded)
        (region,) = regions.regions
        if region.run is not None and not region.tensor.is_contiguous():
            region = region._replace(tensor=region.tensor.contiguous())
            regions.regions = [region]
        place = (sharded.key, region.offset, region.extent, region.run, region.tensor.data_ptr())
        if place in self._placed:
            return  # the model has this tensor in two places
        self._placed.add(place)
        self.slots.extend(_shards.source_slots(regions, sharded.key, self.kept.append))


def step_of(directory: str) -> int | None:
    """Returns the step in the name of Megatron's directory, or None. The name is the same on all ranks."""
    found = re.fullmatch(r"iter_0*(\d+)", _paths.split(directory)[1])
    return None if found is None else int(found[1])


def tracked(folder: str) -> str | None:
    """Returns the content of Megatron's tracker (an iteration, or "release"), or None if there is no tracker."""
    text = _sealpoint.read_file(f"{folder}/{TRACKER}", _TRACKER_SIZE_MAX_BYTES)
    return None if text is None else text.decode(errors="replace").strip()


def _obstacle(directory: str) -> str | None:
    """Explains why Megatron may still need a checkpoint.

    Returns None if a save may replace the checkpoint, because there is no tracker or the tracker's iteration is smaller.
    """
    said, step = tracked(_folder_of(directory)), step_of(directory)
    if said is None or (said.isdecimal() and step is not None and step > int(said)):
        return None
    return f"{TRACKER} says {said!r}, and only checkpoints with a greater iteration are replaced"


def _remove_replaceable(directory: str, options: Options) -> list[str]:
    step = step_of(directory)
    resume = "" if step is None else f", or write {step} into {_folder_of(directory)}/{TRACKER} to resume from it"
    return remove_replaceable(
        directory, run_of(directory), replace=options.replace, obstacle=_obstacle(directory),
        way_out=f"sealpoint.megatron.enable(replace=True), or {removal_of(directory)}{resume}",
    )


def _gatherer(
    state: Any, directory: str, options: Options, provenance: dict[str, str]
) -> Callable[[Call], ShardedState]:
    """Returns the function that gathers the state of a save.

    The returned function also removes the replaced checkpoints, and records them in the provenance of the new checkpoint.
    """

    def gather(call: Call) -> ShardedState:
        rank, size = call.rank, call.size
        gathered = gather_agreed(lambda names: ShardedState(state, rank, size, options, names), call, options)
        staged_copies.log_failed_promotions(options.staged, _folder_of(directory))
        # The checkpoints are removed after all ranks have accepted their states, and before any rank writes.
        replaced = list(call.run_on_first(lambda: list(_remove_replaceable(directory, options))))
        staged_copies.remove_replaced(options.staged, directory, replaced, options.replace)
        provenance.update(provenance_of(replaced))
        return gathered

    return gather


def _of_save(directory: str, options: Options, provenance: dict[str, str]) -> SaveOptions:
    parent = run_of(directory).latest
    given = {name: value for name, value in vars(options).items() if name in names_of("torch.save_async")}
    return SaveOptions(**given, step=step_of(directory), parent=parent, provenance=provenance, allow_empty=True)


def _folder_of(directory: str) -> str:
    return _paths.split(directory)[0]


def run_of(directory: str) -> Run:
    """Returns the record of this process's loads and saves in one folder, the parent of ``directory``."""
    return _runs.setdefault(_folder_of(directory), Run())


def _end(directory: str, info: _sealpoint.CommitInfo, options: Options) -> None:
    """Records the new checkpoint and removes files that killed attempts left. Each rank calls it after the commit."""
    run_of(directory).note_save(info.attempt, info.sequence, directory)
    if options.staged is not None:
        run_of(directory).on_their_way.add(directory)  # the promotion removes such files
    elif session_of(None).rank == 0:
        _directories.remove_leftovers(directory)


def is_ours_or_on_its_way(directory: str) -> bool:
    """Tells whether the directory has a Sealpoint checkpoint, or this process is still promoting a checkpoint to the directory."""
    return directory in run_of(directory).on_their_way or _directories.is_checkpoint(directory)


def finish_staged(folder: str, options: Options) -> None:
    """Finishes the promotions of an earlier job. Collective if saves are staged. See ``_ranks.staged_copies``."""
    staged_copies.finish_promotions(session_of(None), options.staged, options.keep_local, folder)


def path_of(directory: str | os.PathLike[str]) -> str:
    """Returns the path as text. Raises the errors of ``sealpoint._arguments.path_of``.

    Raises UnsupportedError for a URL if this version of Megatron-LM writes its tracker via ``os`` and ``open``.
    """
    path = _arguments.path_of(directory, "directory")
    training = sys.modules.get(_TRAINING)
    if not _paths.is_local(path) and training is not None and not hasattr(training, "maybe_msc"):
        raise UnsupportedError(
            f"the directory is a URL, but this Megatron-LM, of megatron-core {_mcore.version}, writes {TRACKER} as a file "
            "of this machine; expected a directory, or Megatron-LM of megatron-core 0.19",
            path=path,
        )
    return path


def save(state: Any, directory: str | os.PathLike[str], options: Options) -> _sealpoint.CommitInfo:
    """Saves a sharded state dict. Collective. Raises the errors of ``sealpoint.torch.save``, which are the same on all ranks."""
    path, provenance = path_of(directory), dict[str, str]()
    info = save_gathered(_gatherer(state, path, options, provenance), path, _of_save(path, options, provenance))
    _end(path, info, options)
    return info


def save_async(state: Any, directory: str | os.PathLike[str], options: Options) -> SaveFuture:
    """Saves in the background. Returns once the state is copied; the state may then change."""
    path, provenance = path_of(directory), dict[str, str]()
    return save_gathered_async(_gatherer(state, path, options, provenance), path, _of_save(path, options, provenance))


def request_of(future: SaveFuture, directory: str | os.PathLike[str], options: Options, request: Any) -> Any:
    """Returns an AsyncRequest of Megatron (an instance of the passed class) for a running save.

    Megatron's queues watch only the worker of a request, so this worker waits until the save has ended. The first finalize function
    raises the error of the save on all ranks, because Megatron records the checkpoint only after this function has returned.
    """
    running = _running_file(future)

    def finalize() -> None:
        _end(path_of(directory), future.result(), options)

    return request(wait_for, (running, os.getpid()), [finalize])


def _running_file(future: SaveFuture) -> str:
    """Creates a file that exists as long as the save runs, and returns its path."""
    handle, path = tempfile.mkstemp(prefix="sealpoint-save-")
    os.close(handle)
    future.add_done_callback(lambda _: _sealpoint.remove_path(path))
    return path


def wait_for(running: str, trainer: int) -> None:
    """Waits, in a Megatron worker, until the file or the process that created the file no longer exists."""
    while os.path.exists(running):
        try:
            os.kill(trainer, 0)
        except ProcessLookupError:
            return
        time.sleep(_LOOK_EVERY_SECONDS)
