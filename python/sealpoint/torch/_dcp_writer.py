# SPDX-License-Identifier: Apache-2.0
"""Saves by torch.distributed.checkpoint."""

from __future__ import annotations

import dataclasses
from typing import Any, Unpack

from torch.distributed.checkpoint import storage
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.futures import Future

from sealpoint import _paths, _sealpoint
from sealpoint._checkpoint import Path
from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint._keywords import names_of, refuse_unknown
from sealpoint._native import check_none
from sealpoint._ranks.call import Call
from sealpoint._ranks.loads import check_on_first
from sealpoint._save import parent_of
from sealpoint.torch import _dcp_names, _dcp_plain
from sealpoint.torch._aliases import FirstNames
from sealpoint.torch._dcp_plan import PlannedState
from sealpoint.torch._options import SaveOptions, WriterKeywords
from sealpoint.torch._save import save_gathered
from sealpoint.torch._state import gather_agreed

_MEMORY_BUDGET_BYTES = 256 << 20
# Separates these saves from other saves of the process, which may run on a different thread.
_PURPOSE = "dcp"
# The checkpoint that this process saved last, by its parent folder.
_latest: dict[str, tuple[str, int, str]] = {}


class StorageWriter(storage.StorageWriter):
    """Writes the states of ``dcp.save`` and ``dcp.async_save`` as Sealpoint checkpoints, with any planner.

    Collective. Unless ``through_coordinator`` is true, the ranks plan among themselves over a private gloo group and bypass DCP's
    coordinator. Replicated values are stored once and must be equal. The writer can be pickled and reused for further saves,
    including saves in the process that ``async_save`` starts.

    Args:
        path: Directory of the new checkpoint, created if missing; overridden by DCP's ``checkpoint_id``.
        through_coordinator: Let DCP gather plans, metadata and results, and let its coordinator commit. The writer then sends no
            messages of its own. Such a save is slower. Like other DCP writers, it does not detect replicas that differ.
        process_group: Must be the group passed to DCP. Default: all ranks.
        no_dist: Must be equal to ``no_dist`` passed to DCP. If True, this process saves alone.
        frozen: As for ``sealpoint.torch.save``. If ``parent`` is not set, frozen tensors are linked from the last
            checkpoint that this process saved into the same folder.
        memory_budget_bytes: Size of the staging memory. The first save of the process group fixes this size.
        codec, codec_level, chunk_size_bytes, stored_cuts, fingerprints, step, parent, provenance: As for
            ``sealpoint.save``.
        attributes: As for ``sealpoint.save``.
        compare_replicas, allow_pickle, full_every, deadline: As for ``sealpoint.torch.save``.

    Errors are the errors of ``sealpoint.torch.save``, wrapped in DCP's CheckpointException, on all ranks.

    Examples:
        >>> import torch, torch.distributed.checkpoint as dcp
        >>> from sealpoint.torch.dcp import StorageWriter
        >>> _ = dcp.save({"w": torch.ones(2)}, storage_writer=StorageWriter("checkpoint"))
    """

    def __init__(
        self, path: Path | None = None, *, through_coordinator: bool = False, **options: Unpack[WriterKeywords]
    ) -> None:
        super().__init__()
        refuse_unknown("StorageWriter", options, [*names_of(WriterKeywords), "through_coordinator"])
        options.setdefault("memory_budget_bytes", _MEMORY_BUDGET_BYTES)
        options["parent"] = parent_of(options.get("parent"))
        if through_coordinator and options.get("frozen"):
            raise InvalidArgumentError("frozen needs through_coordinator=False: DCP's coordinator does not know the preceding "
                                       "checkpoint")
        self._path = None if path is None else _dcp_names.path_text(path, "the StorageWriter")
        self._through_coordinator = through_coordinator
        self._options = SaveOptions(**options, background_deadline=None)
        self._plan: SavePlan | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The copy is for another process. The default group of that process has the same ranks.
        return {**vars(self), "_options": dataclasses.replace(self._options, process_group=None), "_plan": None}

    @property
    def checkpoint_id(self) -> str | None:
        return self._path

    def reset(self, checkpoint_id: Any = None) -> None:
        if checkpoint_id is not None:
            self._path = _dcp_names.path_text(checkpoint_id, "the StorageWriter")
        self._plan = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return _dcp_names.is_path(checkpoint_id)

    def storage_meta(self) -> StorageMeta:
        return StorageMeta(checkpoint_id=self._path)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self._plan = None
        path = _dcp_names.path_text(self._path, "the StorageWriter")
        if not kwargs.get("use_collectives", True):
            raise UnsupportedError("use_collectives is False, expected True: one checkpoint is committed by all ranks")
        if self._through_coordinator:
            _dcp_plain.check_is_new(path)
        else:
            _dcp_names.check_rank(kwargs.get("rank"), self._options.process_group, self._options.no_dist)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        if self._through_coordinator:
            return plan
        self._plan = plan
        return dataclasses.replace(plan, items=[], planner_data={})

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        if not self._through_coordinator:
            _dcp_names.check_size(len(plans), self._options.process_group, self._options.no_dist)
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[storage.WriteResult]]:
        results: list[storage.WriteResult] = []
        if self._through_coordinator:
            path = _dcp_names.path_text(self._path, "the StorageWriter")
            results = _dcp_plain.write(path, plan, planner, self._options)
        else:
            stashed, self._plan = self._plan, None
            self._save(_whole_plan(plan if stashed is None else stashed, planner), planner)
        future: Future[list[storage.WriteResult]] = Future()
        future.set_result(results)
        return future

    def _save(self, plan: SavePlan, planner: SavePlanner) -> _sealpoint.CommitInfo:
        options, path = self._options, _dcp_names.path_text(self._path, "the StorageWriter")
        folder = _paths.split(_paths.absolute(path))[0]
        if options.frozen and options.parent is None:
            options = dataclasses.replace(options, parent=_latest.get(folder))
        info = save_gathered(
            lambda call: gather_agreed(lambda names: self._planned(plan, planner, call, names), call, options),
            path,
            options,
            _PURPOSE,
        )
        _latest[folder] = (info.attempt, info.sequence, _paths.absolute(path))
        return info

    def _planned(self, plan: SavePlan, planner: SavePlanner, call: Call, names: FirstNames) -> PlannedState:
        check_on_first(call, _dcp_names.path_text(self._path, "the StorageWriter"), check_none)
        return PlannedState(plan, planner, call.rank, call.size, self._options.allow_pickle, names)

    def finish(self, metadata: Metadata, results: list[list[storage.WriteResult]]) -> None:
        """Commits the checkpoint if ``through_coordinator`` is true. Otherwise, the checkpoint is already committed."""
        if self._through_coordinator:
            path = _dcp_names.path_text(self._path, "the StorageWriter")
            _dcp_plain.commit(path, metadata, results, self._options)


def _whole_plan(plan: SavePlan, planner: SavePlanner) -> SavePlan:
    """Returns the plan, or the planner's cached plan if the plan is empty.

    DCP passes an empty plan if the plan has not changed since the preceding save.
    """
    if plan.usable:
        return plan
    key = getattr(planner, "_cached_plans_key", None)
    cached = getattr(SavePlanner, "_cached_save_plan", {}).get(key)
    if not isinstance(cached, SavePlan):
        raise InvalidArgumentError(
            f"the planner {type(planner).__name__} returned no plan and has no cached one; expected one of them"
        )
    return cached
