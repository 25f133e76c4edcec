# SPDX-License-Identifier: Apache-2.0
"""Saving by torch.distributed.checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import storage
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.futures import Future

from sealpoint import _sealpoint
from sealpoint._checkpoint import Path
from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint._save import CHUNK_SIZE_DEFAULT_BYTES, Codec, Parent, parent_of
from sealpoint.torch import _dcp_names, _dcp_plain
from sealpoint.torch._dcp_plan import PlannedState
from sealpoint.torch._save import DEADLINE_DEFAULT_SECONDS, begin
from sealpoint.torch._state import unite

_MEMORY_BUDGET_BYTES = 256 << 20
# Saves may be on another thread than the others of the process.
_PURPOSE = "dcp"


class StorageWriter(storage.StorageWriter):
    """Writes what ``dcp.save`` and ``dcp.async_save`` save, with any planner, as a checkpoint of this library.

    The ranks plan among themselves, over a group of gloo of their own: plans do not go through DCP's coordinator,
    unless ``through_coordinator``. What several ranks hold is stored once, and must be equal. It can be pickled, and
    used for one save after the other, also in the process of ``async_save``.

    Args:
        path: the new checkpoint's directory, made if it is missing; ``checkpoint_id`` of DCP takes its place.
        process_group: that given to DCP; None: all ranks.
        no_dist: as given to DCP: this process saves alone.
        through_coordinator: plans, metadata and results are gathered by DCP, and its coordinator commits. Slower, and
            differing replicas are not noticed, as with other writers; needs no messages but those of DCP.
        step, parent, provenance, codec, codec_level, chunk_size_bytes: as for ``sealpoint.save``.
        compare_replicas, allow_pickle, deadline: as for ``sealpoint.torch.save``.
        memory_budget_bytes: staging memory, from the first save of this process group on.

    Errors of ``sealpoint.torch.save``, in the CheckpointException that DCP raises on all ranks.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        process_group: dist.ProcessGroup | None = None,
        no_dist: bool = False,
        through_coordinator: bool = False,
        step: int | None = None,
        parent: Parent = None,
        provenance: Mapping[str, str] | None = None,
        codec: Codec = "none",
        codec_level: int = 1,
        chunk_size_bytes: int = CHUNK_SIZE_DEFAULT_BYTES,
        compare_replicas: bool = True,
        allow_pickle: bool = False,
        deadline: float | None = DEADLINE_DEFAULT_SECONDS,
        memory_budget_bytes: int = _MEMORY_BUDGET_BYTES,
    ) -> None:
        super().__init__()
        self._path = None if path is None else _dcp_names.path_text(path, "the StorageWriter")
        self._group, self._no_dist, self._through_coordinator = process_group, no_dist, through_coordinator
        self._step, self._parent = step, parent_of(parent)
        self._provenance = dict(provenance or {})
        self._encoding = (codec, codec_level, chunk_size_bytes)
        self._compare_replicas, self._allow_pickle = compare_replicas, allow_pickle
        self._deadline, self._budget = deadline, memory_budget_bytes
        self._plan: SavePlan | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Of another process, whose ranks are those of the group by default.
        return {**vars(self), "_group": None, "_plan": None}

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
            _dcp_names.check_rank(kwargs.get("rank"), self._group, self._no_dist)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        if self._through_coordinator:
            return plan
        self._plan = plan
        return dataclasses.replace(plan, items=[], planner_data={})

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        if not self._through_coordinator:
            _dcp_names.check_size(len(plans), self._group, self._no_dist)
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[storage.WriteResult]]:
        results: list[storage.WriteResult] = []
        if self._through_coordinator:
            path = _dcp_names.path_text(self._path, "the StorageWriter")
            results = _dcp_plain.write(path, plan, planner, self._step, self._encoding, self._allow_pickle)
        else:
            stashed, self._plan = self._plan, None
            self._save(_whole_plan(plan if stashed is None else stashed, planner), planner)
        future: Future[list[storage.WriteResult]] = Future()
        future.set_result(results)
        return future

    def _save(self, plan: SavePlan, planner: SavePlanner) -> _sealpoint.CommitInfo:
        info = begin(
            lambda call: unite(
                lambda names: PlannedState(plan, planner, call.rank, call.size, self._allow_pickle, names),
                call,
                self._encoding,
            ),
            _dcp_names.path_text(self._path, "the StorageWriter"),
            process_group=self._group,
            no_dist=self._no_dist,
            step=self._step,
            parent=self._parent,
            provenance=self._provenance,
            compare_replicas=self._compare_replicas,
            deadline=self._deadline,
            background_deadline=None,
            memory_budget_bytes=self._budget,
            purpose=_PURPOSE,
        )
        assert isinstance(info, _sealpoint.CommitInfo)
        return info

    def finish(self, metadata: Metadata, results: list[list[storage.WriteResult]]) -> None:
        """Everything is committed by now, unless through the coordinator."""
        if self._through_coordinator:
            path = _dcp_names.path_text(self._path, "the StorageWriter")
            _dcp_plain.commit(path, metadata, results, self._step, self._parent, self._provenance)


def _whole_plan(plan: SavePlan, planner: SavePlanner) -> SavePlan:
    """The plan of a save that is as the one before it: a planner that caches gives an empty one then."""
    if plan.usable:
        return plan
    key = getattr(planner, "_cached_plans_key", None)
    cached = getattr(SavePlanner, "_cached_save_plan", {}).get(key)
    if not isinstance(cached, SavePlan):
        raise InvalidArgumentError(
            f"the planner {type(planner).__name__} gave no plan, and has none in its cache; expected one of them"
        )
    return cached
