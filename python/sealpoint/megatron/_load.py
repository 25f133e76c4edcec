# SPDX-License-Identifier: Apache-2.0
"""Functions that load sharded state dicts of Megatron-core."""

from __future__ import annotations

import bisect
import os
import re
from typing import Any

import torch

from sealpoint import _paths, _sealpoint, _tree
from sealpoint._arguments import threads_of
from sealpoint._checkpoint import Checkpoint
from sealpoint._checkpoint import open_own as open_checkpoint
from sealpoint._directories import is_checkpoint
from sealpoint._errors import Error, MismatchError, UncommittedError, UnsupportedError
from sealpoint._native import BACKEND, CONFIG, backend_of, check_one
from sealpoint._option_table import LOAD_BUDGET_DEFAULT_BYTES
from sealpoint._ranks.loads import open_reader, read_tree
from sealpoint._tree import Node
from sealpoint._tree_paths import entries_of, kind_of
from sealpoint.megatron import _mcore
from sealpoint.megatron._options import Options
from sealpoint.megatron._save import COMMON_KEY, finish_staged, path_of, run_of
from sealpoint.megatron._tensors import RunTensor, regions_to_load
from sealpoint.torch._aliases import Destinations
from sealpoint.torch._dtypes import DTYPE_OF
from sealpoint.torch._load import check_widening, rounding_of
from sealpoint.torch._session import session_of
from sealpoint.torch._shards import destination_of
from sealpoint.torch._state import agree

# The unique key of an object ends with the position of the object among the shards, and the number of shards.
_OBJECT_KEY = re.compile(r".+/shard_[\d.]+_[\d.]+")


class _Memory:
    """Records the memory that a read fills, so that no memory is filled twice."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []  # [begin, end) in bytes, ascending, disjoint

    def claim(self, tensor: torch.Tensor) -> bool:
        """Claims the memory of a tensor. Returns False if a part of this memory was already claimed."""
        if tensor.numel() == 0:
            return True
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        begin = tensor.data_ptr()
        end = begin + (last + 1) * tensor.element_size()
        at = bisect.bisect(self._ranges, (begin, end))
        if (at > 0 and self._ranges[at - 1][1] > begin) or (at < len(self._ranges) and self._ranges[at][0] < end):
            return False
        self._ranges.insert(at, (begin, end))
        return True


class _Request:
    """The part of the state that one rank loads: destinations of tensors, and values of objects."""

    def __init__(self, state: Any, tree: Node, checkpoint: Checkpoint, allow_pickle: bool) -> None:
        self.destinations = Destinations()
        self._results: dict[int, Any] = {}  # by id of the ShardedTensor or ShardedObject
        self._later: list[tuple[torch.Tensor, torch.Tensor]] = []  # (destination, memory that was read into)
        self._placed: set[Any] = set()
        self._memory = _Memory()
        self._checkpoint, self._state = checkpoint, state
        self._nodes: dict[str, Node] = entries_of(tree) or {}
        self._decoder = _tree.Decoder(self._inner_tensor, allow_pickle)
        for sharded in _mcore.dict_utils.nested_values(state):
            if isinstance(sharded, _mcore.mapping.ShardedObject):
                self._results[id(sharded)] = self._object(sharded)
            else:
                self._results[id(sharded)] = self._tensor(sharded)

    def _object(self, sharded: Any) -> Any:
        name = sharded.unique_key
        if name not in self._nodes:
            raise MismatchError("missing: the checkpoint does not have this object", object=name)
        try:
            return self._decoder.decode(self._nodes[name])
        except Error as error:
            if error.object is None:
                error.object = name
            raise

    def _tensor(self, sharded: Any) -> torch.Tensor:
        name = sharded.key
        if name not in self._checkpoint:
            raise MismatchError("missing: the checkpoint does not have this tensor", tensor=name)
        if sharded.data is None:
            sharded.init_data("cpu")
        data: torch.Tensor = sharded.data.detach()
        if (place := (name, id(sharded.data))) in self._placed:
            return data  # the model has this tensor in two places
        self._placed.add(place)
        # The main parameter of a 32-bit parameter may be the model's own tensor. One read must not fill the same memory twice.
        is_dense = data.is_contiguous() or not isinstance(sharded, RunTensor)
        memory = data if is_dense and self._memory.claim(data) else torch.empty_like(data)
        if memory is not data:
            self._later.append((data, memory))
        regions = regions_to_load(sharded, tuple(self._checkpoint[name].shape), memory)
        self.destinations.add(regions, name)
        return data

    def _inner_tensor(self, name: str) -> torch.Tensor:
        """Returns a new, unsharded tensor for a tensor that is nested in an object."""
        tensor = _empty(self._checkpoint, name)
        self.destinations.add(tensor, name)
        return tensor

    def result(self) -> Any:
        """Returns the state, with each sharded tensor or object replaced by the loaded one. Call it after the read."""
        for destination, memory in self._later:
            destination.copy_(memory)
        return _mcore.dict_utils.dict_list_map_outplace(lambda sharded: self._results[id(sharded)], self._state)


def _empty(checkpoint: Checkpoint, name: str) -> torch.Tensor:
    return torch.empty(checkpoint[name].shape, dtype=_dtype_of(checkpoint, name), device="cpu")


def is_ours(directory: str | os.PathLike[str]) -> bool:
    """Tells whether this library must load the checkpoint in the directory. One rank may call it alone.

    Raises MismatchError (the directory has two checkpoints), UncommittedError (a staged save was never promoted), and
    UnsupportedError (Megatron would have to load from a URL).
    """
    path = path_of(directory)
    check_one(path)
    is_own = is_checkpoint(path)
    if not is_own and backend_of(path) == BACKEND:
        raise UncommittedError(
            f"{CONFIG} is the only file of this checkpoint: its promotion was interrupted, and the local disks no longer have it; "
            "newest(run, staged=…) sets the tracker to the newest complete checkpoint",
            path=path,
        )
    if not is_own and not _paths.is_local(path):
        raise UnsupportedError(
            "there is no checkpoint of this library, and Megatron reads its own checkpoints only from file systems; "
            "expected a Sealpoint checkpoint, or a directory",
            path=path,
        )
    return is_own


def are_ours(directory: str | os.PathLike[str], options: Options) -> bool:
    """Calls ``is_ours`` on rank 0 and returns the answer on all ranks. Collective: all ranks call it."""
    finish_staged(_paths.split(path_of(directory))[0], options)
    with session_of(None).call("look at", path_of(directory), deadline=options.deadline) as call:
        return bool(call.run_on_first(lambda: is_ours(directory)))


def load(state: Any, directory: str | os.PathLike[str], options: Options) -> Any:
    """Loads a sharded state dict. Collective.

    Raises the errors of ``sealpoint.torch.load``, which name the key and are the same on all ranks.
    """
    _mcore.utils.force_all_tensors_to_non_fp8(state)
    session = session_of(None)
    with session.call("load", path_of(directory), deadline=options.deadline) as call:
        reader = open_reader(call, path_of(directory), LOAD_BUDGET_DEFAULT_BYTES)
        checkpoint = Checkpoint(reader.checkpoint(), 1)
        tree = read_tree(reader)

        def make() -> tuple[_Request, bytes]:
            request = _Request(state, tree, checkpoint, options.allow_pickle)
            check_widening(options.convert, request.destinations.slots, checkpoint)
            return request, b""

        found, _ = agree(call, make, "compared their states with the checkpoint")
        reader.load(
            slots=found.destinations.slots,
            contract=_sealpoint.LoadContract(),
            convert=rounding_of(options.convert),
            threads=threads_of(options.threads),
            memory_budget_bytes=LOAD_BUDGET_DEFAULT_BYTES,
            share_chunks=call.spans_hosts(),
            progress=None,
        )
    path = path_of(directory)
    run_of(path).note_load(checkpoint.attempt, checkpoint.sequence, path)
    return found.result()


def tensors_metadata(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns one ShardedTensor without data for each stored tensor, by key. One rank may call it alone."""
    with open_checkpoint(path_of(directory)) as checkpoint:
        return {
            name: _mcore.mapping.ShardedTensor.from_rank_offsets(
                name, torch.empty(checkpoint[name].shape, dtype=_dtype_of(checkpoint, name), device="meta")
            ).without_data()
            for name, node in _nodes_of(checkpoint).items()
            if kind_of(node) == "tensor" and not _OBJECT_KEY.fullmatch(name)
        }


def sharded_metadata(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the result of ``tensors_metadata``, and also the objects by unique key, except for the common state."""
    with open_checkpoint(path_of(directory)) as checkpoint:
        objects = [name for name in _nodes_of(checkpoint) if _OBJECT_KEY.fullmatch(name)]
    found = {name: _mcore.mapping.ShardedObject.empty_from_unique_key(name) for name in objects}
    return {name: item for name, item in found.items() if item.key != COMMON_KEY} | tensors_metadata(directory)


def _dtype_of(checkpoint: Checkpoint, name: str) -> torch.dtype:
    dtype = checkpoint[name].dtype_name
    if dtype not in DTYPE_OF:
        raise UnsupportedError(f"this torch has no dtype {dtype}", tensor=name)
    return DTYPE_OF[dtype]


def _nodes_of(checkpoint: Checkpoint) -> dict[str, Node]:
    if _tree.OBJECT not in checkpoint.objects:
        return {name: {_tree.KIND: "tensor", "name": name} for name in checkpoint}
    return dict(entries_of(_tree.parse(bytes(checkpoint.objects[_tree.OBJECT]))) or {})


def common_state(directory: str | os.PathLike[str], options: Options) -> dict[str, Any] | None:
    """Returns the common (unsharded) state, or None if the checkpoint has no such state. One rank may call it alone."""
    with open_checkpoint(path_of(directory)) as checkpoint:
        node = _nodes_of(checkpoint).get(f"{COMMON_KEY}/shard_0_1")
        if node is None:
            return None
        tensors: dict[str, torch.Tensor] = {}

        def inner(name: str) -> torch.Tensor:
            tensors[name] = _empty(checkpoint, name)
            return tensors[name]

        value = _tree.Decoder(inner, options.allow_pickle).decode(node)
        checkpoint.read({name: destination_of(tensor) for name, tensor in tensors.items()})
    if not isinstance(value, dict):
        raise MismatchError(f"kind: the common state is a {type(value).__name__}, expected a mapping", object=COMMON_KEY)
    return value
