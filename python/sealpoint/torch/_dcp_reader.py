# SPDX-License-Identifier: Apache-2.0
"""Loads by torch.distributed.checkpoint."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Unpack, cast

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import storage
from torch.distributed.checkpoint.metadata import STORAGE_TYPES, Metadata, StorageMeta
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.futures import Future

from sealpoint import _sealpoint, _tree
from sealpoint._arguments import threads_of
from sealpoint._checkpoint import Checkpoint, Path
from sealpoint._errors import CommError, CorruptError, Error, InvalidArgumentError, MismatchError, UnsupportedError
from sealpoint._keywords import names_of, refuse_unknown
from sealpoint._native import check_one
from sealpoint._ranks.call import Call
from sealpoint._ranks.loads import open_reader, read_tree
from sealpoint._ranks.session import Session
from sealpoint._tree import Node, text_of
from sealpoint._tree_paths import kind_of
from sealpoint.torch import _dcp_names, _differences, _optimizers, _shards
from sealpoint.torch._aliases import Destinations
from sealpoint.torch._arguments import checked_call
from sealpoint.torch._dcp_names import StoredState
from sealpoint.torch._dcp_plan import is_in_boxes, live_value
from sealpoint.torch._dtypes import DTYPE_OF
from sealpoint.torch._load import check_widening, mask_of, rounding_of, unmatched_of
from sealpoint.torch._options import LoadOptions, ReaderKeywords
from sealpoint.torch._session import session_of
from sealpoint.torch._state import agree


class _Open(NamedTuple):
    session: Session
    generation: int  # generation of the groups that the reader keeps
    reader: _sealpoint.CollectiveReader
    stored: StoredState


class StorageReader(storage.StorageReader):
    """Reads Sealpoint checkpoints for ``dcp.load``, with any planner.

    Collective: all ranks of the group load together, in any layout. Plans bypass DCP's coordinator. A load makes further checks, in
    addition to DCP's checks. It raises an error if a stored key is in no rank's state, or if dtypes differ. It also raises an error
    if the checkpoint has a value where the state has a tensor. The error names the key. Each ``per_rank`` value is loaded as a
    plain value, because DCP does not keep the wrapper object.

    Args:
        path: Directory of the checkpoint; overridden by DCP's ``checkpoint_id``.
        process_group: Must be the group passed to DCP. Default: all ranks.
        no_dist: Must be equal to ``no_dist`` passed to DCP. If True, this process loads alone.
        unexpected: Action for stored keys that are in no rank's state: "error", or "allow" to load only a part of the checkpoint.
        allow_pickle, deadline, memory_budget_bytes: As for ``sealpoint.torch.save``.
        convert, threads, share_chunks: As for ``sealpoint.torch.load``.
        progress: As for ``sealpoint.Checkpoint.read``.

    Errors are the errors of ``sealpoint.torch.load``, wrapped in DCP's CheckpointException, on all ranks.

    Examples:
        >>> import torch, torch.distributed.checkpoint as dcp
        >>> from sealpoint.torch.dcp import StorageReader, StorageWriter
        >>> _ = dcp.save({"w": torch.ones(2)}, storage_writer=StorageWriter("checkpoint"))
        >>> state = {"w": torch.zeros(2)}
        >>> dcp.load(state, storage_reader=StorageReader("checkpoint"))
        >>> state["w"]
        tensor([1., 1.])
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        process_group: dist.ProcessGroup | None = None,
        no_dist: bool = False,
        unexpected: Literal["allow", "error"] = "error",
        **options: Unpack[ReaderKeywords],
    ) -> None:
        super().__init__()
        refuse_unknown("StorageReader", options, ["process_group", "no_dist", "unexpected", *names_of(ReaderKeywords)])
        if unexpected not in ("allow", "error"):
            raise InvalidArgumentError(f"unexpected is {unexpected!r}, expected allow or error")
        self._path = None if path is None else _dcp_names.path_text(path, "the StorageReader")
        self._group, self._no_dist, self._unexpected = process_group, no_dist, unexpected
        self._options = LoadOptions(**options)
        self._open: _Open | None = None
        self._failure: Error | None = None
        self._items: list[ReadItem] | None = None

    @property
    def checkpoint_id(self) -> str | None:
        return self._path

    def reset(self, checkpoint_id: Any = None) -> None:
        if checkpoint_id is not None:
            self._path = _dcp_names.path_text(checkpoint_id, "the StorageReader")
        self._open, self._failure, self._items = None, None, None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return _dcp_names.is_path(checkpoint_id)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Opens the checkpoint. Collective over the group. The argument ``rank`` is not supported."""
        if "rank" in kwargs and self._failure is not None:
            raise self._failure
        self._failure = self._open = None
        path = _dcp_names.path_text(self._path, "the StorageReader")
        session = session_of(self._group, is_alone=self._no_dist)
        try:
            with checked_call(session, "load", path, self._options) as call:
                reader = open_reader(call, path, self._options.memory_budget_bytes, check_one)
                stored = StoredState(read_tree(reader), Checkpoint(reader.checkpoint(), 1))
        except Error as error:
            self._failure = error
            raise
        self._open = _Open(session, session.generation, reader, stored)
        return Metadata(
            state_dict_metadata=cast("dict[str, STORAGE_TYPES]", stored),
            planner_data=stored.paths,
            storage_meta=StorageMeta(checkpoint_id=path),
        )

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self._items = None
        _dcp_names.check_rank(kwargs.get("rank"), self._group, self._no_dist)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        self._items = plan.items
        return dataclasses.replace(plan, items=[])

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        _dcp_names.check_size(len(plans), self._group, self._no_dist)
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        items, self._items = plan.items if self._items is None else self._items, None
        opened, self._open = self._open, None
        if opened is None:
            raise InvalidArgumentError("the StorageReader is not open, expected a call of read_metadata() before")
        with opened.session.call("read_data of DCP", self._path, deadline=self._options.deadline) as call:
            self._load(call, opened, items, planner)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _load(self, call: Call, opened: _Open, items: list[ReadItem], planner: LoadPlanner) -> None:
        names, options = list(opened.stored), self._options

        def make() -> tuple[_Request, bytes]:
            request = _Request(opened.stored, planner, call.rank, call.size, options.allow_pickle)
            for item in items:
                request.add(item)
            check_widening(options.convert, request.destinations.slots, opened.stored.checkpoint)
            return request, bytes([request.destinations.must_compare]) + mask_of(names, request.names(names))

        request, answers = agree(call, make, "compared their states with the checkpoint")
        if opened.generation != opened.session.generation:
            raise CommError("the ranks were reconnected since the checkpoint was opened")
        unmatched = unmatched_of(names, [answer[1:] for answer in answers])
        if lost := _optimizers.without_state(names, unmatched):
            found = [("optimizer", path.rstrip("."), _optimizers.NO_PLACES) for path in lost]
            _differences.raise_together(call, found, unmatched, "")
        if unmatched and self._unexpected == "error":
            unexpected = [("unexpected", name, "") for name in unmatched]
            _differences.raise_together(call, unexpected, unmatched, 'unexpected="allow"')
        opened.reader.load(
            slots=request.destinations.slots,
            contract=_sealpoint.LoadContract(),
            convert=rounding_of(options.convert),
            threads=threads_of(options.threads),
            memory_budget_bytes=options.memory_budget_bytes,
            share_chunks=call.spans_hosts() if options.share_chunks is None else options.share_chunks,
            progress=options.progress,
        )
        if any(answer[0] for answer in answers):
            agree(call, lambda: (request.destinations.compare(), b""), "compared the results of two loads")
        agree(call, request.commit, "set the values of their states")


class _Request:
    """The items in one rank's plan, with their destinations."""

    def __init__(self, stored: StoredState, planner: LoadPlanner, rank: int, size: int, allow_pickle: bool) -> None:
        self.destinations = Destinations()
        self._stored, self._planner = stored, planner
        self._rank, self._size = rank, size
        self._decoder = _tree.Decoder(self._inner_tensor, allow_pickle)
        self._tensors: list[tuple[ReadItem, torch.Tensor]] = []
        self._values: list[tuple[ReadItem, Any]] = []
        self._in_boxes: set[str] = set()
        self._rank_values: dict[str, Node] | None = None

    def names(self, stored: list[str]) -> set[str]:
        """Returns the names in the state, including names of tensors that have no elements on this rank."""
        found = {item.storage_index.fqn for item, _ in [*self._tensors, *self._values]}
        state = getattr(self._planner, "state_dict", None)
        if isinstance(state, Mapping):
            found.update(state)
        # A planner that does not flatten stores the content of a mapping under the name of the mapping.
        found.update(name for name in stored if name not in found and self._is_within(name, found))
        return found

    def _is_within(self, name: str, found: set[str]) -> bool:
        path = self._stored.paths[name]
        return any(text_of(path[:count]) in found for count in range(1, len(path)))

    def add(self, item: ReadItem) -> None:
        name = item.storage_index.fqn
        node = self._stored.node(name)
        live = live_value(self._planner, item.dest_index.fqn)
        if item.type == LoadItemType.BYTE_IO:
            self._values.append((item, self._value(name, node, live)))
        else:
            self._add_tensor(item, _dcp_names.tensor_name(node), live)

    def _add_tensor(self, item: ReadItem, name: str, live: Any) -> None:
        memory = self._planner.resolve_tensor(item).detach()
        self._tensors.append((item, memory))
        if is_in_boxes(live):
            if item.dest_index.fqn not in self._in_boxes:
                self._in_boxes.add(item.dest_index.fqn)
                self.destinations.add(live, name)
            return
        offset, extent = tuple(item.storage_offsets), tuple(item.lengths)
        if tuple(memory.shape) != extent:
            raise MismatchError(f"shape: the destination has {tuple(memory.shape)}, its plan says {extent}", tensor=name)
        self.destinations.add_part(name, self._stored.shape_of(name), _shards.Part((offset, extent), memory))

    def _value(self, name: str, node: Node, live: Any) -> Any:
        if _shards.is_tensor(live):
            raise MismatchError(f"kind: the state has a tensor, the checkpoint {_tree.brief(node)}", object=name)
        if not self._stored.is_leaf(name) and getattr(self._planner, "flatten_state_dict", False):
            raise MismatchError(f"kind: the state has a {type(live).__name__}, the checkpoint a container", object=name)
        try:
            return self._decoder.decode(self._own_node(name, node) if kind_of(node) == "per_rank" else node)
        except Error as error:
            if error.object is None:
                error.object = name
            raise

    def _own_node(self, name: str, node: Node) -> Node:
        if node["size"] != self._size:
            raise MismatchError(f"per_rank: {node['size']} ranks saved it, {self._size} load", object=name)
        if self._rank_values is None:
            self._rank_values = _tree.parse(self._stored.checkpoint.objects[_tree.rank_object(self._rank)])
        stored = self._rank_values.get(text_of(self._stored.paths[name]))
        if stored is None:
            raise CorruptError(f"the object of rank {self._rank} lacks a value", object=name)
        return stored

    def _inner_tensor(self, name: str) -> torch.Tensor:
        """Returns a new, unsharded tensor for a tensor that is nested in a value."""
        stored = self._stored.checkpoint[name]
        if stored.dtype_name not in DTYPE_OF:
            raise UnsupportedError(f"this torch has no dtype {stored.dtype_name}", tensor=name)
        tensor = torch.empty(stored.shape, dtype=DTYPE_OF[stored.dtype_name])
        self.destinations.add(tensor, name)
        return tensor

    def commit(self) -> tuple[None, bytes]:
        """Passes the loaded data to the planner. ``agree`` calls it after all data was read and verified."""
        for item, tensor in self._tensors:
            self._planner.commit_tensor(item, tensor)
        for item, value in self._values:
            data = io.BytesIO()  # the planner unpickles only these bytes, which are pickled here
            torch.save(value, data)
            data.seek(0)
            self._planner.load_bytes(item, data)
        return None, b""
