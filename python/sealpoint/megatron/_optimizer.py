# SPDX-License-Identifier: Apache-2.0
"""The state of Megatron's distributed optimizer, as runs of the model's parameters.

Megatron flattens the main parameter and each moment of a parameter. Each data-parallel rank has one run of each flattened tensor.
The runs are stored under the names that the format fully_reshardable uses for whole tensors. No rank gathers state, and a load on a
different mesh can split the same tensors into different runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint.megatron import _mcore
from sealpoint.megatron._tensors import Numbers, RunTensor

_TYPE, OF_STATE = "distrib_optim_sharding_type", "param_state_sharding_type"
# Checkpoints have the content and the name of a Megatron format. State dicts have different content, and a different name.
_STORED_AS, _FORMAT = "fully_reshardable", "sealpoint"
_TAKEN_OVER = ("dp_reshardable", "fully_reshardable")
# Key in the metadata of a loaded checkpoint. If set, only Megatron's own state dicts can be loaded from this checkpoint.
NATIVE = "sealpoint_native"
_RUNS_MAX = 1 << 16


class _Run(NamedTuple):
    """A run of the box of a part. Its elements are [begin, begin + length) of the parameter's flattened local tensor."""

    part: int
    run: tuple[int, int]
    begin: int


class FlatDestination:
    """A flat tensor to load into. It is assembled from its runs after the load."""

    def __init__(self, flat: torch.Tensor, places: list[tuple[int, int]]) -> None:
        self._flat, self._places = flat, places

    def fill(self, loaded: list[torch.Tensor]) -> torch.Tensor:
        for (begin, end), tensor in zip(self._places, loaded, strict=True):
            place = self._flat[begin:end]
            if tensor.data_ptr() != place.data_ptr():  # a wrapper of Megatron loaded the run on another rank
                place.copy_(tensor)
        return self._flat


def runs_of(view: torch.Tensor, part: int, begin: int, end: int, key: str) -> Iterator[_Run]:
    """Returns runs of elements that are in [begin, end) of a contiguous tensor and also in a view of this tensor."""
    block, dim = 1, view.dim()  # elements that are consecutive in both tensors
    while dim > 0 and (view.shape[dim - 1] == 1 or view.stride(dim - 1) == block):
        block *= view.shape[dim - 1]
        dim -= 1
    outer = view.shape[:dim]
    count = 1
    for size in outer:
        count *= size
    if count > _RUNS_MAX:
        raise UnsupportedError(f"a factory cuts the parameter into {count} runs, at most {_RUNS_MAX} are stored", tensor=key)
    for number in range(count):
        start, rest = view.storage_offset(), number
        for size, stride in zip(reversed(outer), reversed(view.stride()[:dim]), strict=True):
            start += rest % size * stride
            rest //= size
        low, high = max(start, begin), min(start + block, end)
        if low < high:
            first = number * block - start
            yield _Run(part, (int(first + low), int(first + high)), int(low))


def parts_of(metadata: Any, key: str) -> tuple[list[Any], list[torch.Tensor]]:
    """Returns the ShardedTensors of a parameter, without memory, and for each of them a view with the positions of its elements."""
    whole = torch.empty(metadata.data.shape, dtype=metadata.data.dtype, device="meta")
    if not isinstance(metadata, _mcore.mapping.ShardedTensorFactory):
        return [metadata], [whole]
    built = metadata.build_fn(key, whole, metadata.replica_id, None)
    parts = list(_mcore.dict_utils.nested_values({"parts": built}))
    for part in parts:
        if part.data.untyped_storage()._cdata != whole.untyped_storage()._cdata:
            raise UnsupportedError("its factory makes copies, expected views of the parameter", tensor=key)
    return parts, [part.data for part in parts]


def _linear(shape: Numbers, offset: Numbers) -> int:
    number = 0
    for size, at in zip(shape, offset, strict=True):
        number = number * size + at
    return number


def _run_tensor(part: Any, key: str, run: tuple[int, int], memory: torch.Tensor, is_owner: bool) -> RunTensor:
    shape = tuple(part.global_shape)
    extent = (1,) * part.prepend_axis_num + tuple(part.local_shape)
    count = _linear(shape, tuple(size - 1 for size in shape)) + 1
    # Megatron distinguishes runs by this position: the first element of the box, and the first element of the run in the box.
    place = (_linear(shape, tuple(part.global_offset)), run[0])
    return RunTensor(
        key=key, data=memory, dtype=memory.dtype, local_shape=tuple(memory.shape), global_shape=(count, count),
        global_offset=place, axis_fragmentations=None, replica_id=0 if is_owner else 1, prepend_axis_num=1,
        allow_shape_mismatch=part.allow_shape_mismatch, tensor_shape=shape,
        box=(tuple(part.global_offset), extent), run=run, is_owner=is_owner,
    )


def _state_of(flat: torch.Tensor, name: str, metadata: Any, begin: int, is_owner: bool) -> dict[str, Any]:
    """Returns the part of a sharded state dict for one parameter and one kind of state."""
    key = f"optimizer.state.{name}.{metadata.key}"
    if not flat.is_contiguous():
        raise InvalidArgumentError("the optimizer's tensor is not contiguous", tensor=key)
    flat = flat.detach()
    parts, views = parts_of(metadata, key)
    tensors, places = [], []
    for number, view in enumerate(views):
        for _, run, at in runs_of(view, number, begin, begin + flat.numel(), key):
            place = (at - begin, at - begin + run[1] - run[0])
            part = parts[number]
            own_key = key if part is metadata else part.key
            tensors.append(_run_tensor(part, own_key, run, flat[place[0] : place[1]], is_owner))
            places.append(place)
    if sum(end - start for start, end in places) != flat.numel():
        found = sum(end - start for start, end in places)
        raise InvalidArgumentError(
            f"the optimizer has {flat.numel()} elements of the parameter from {begin} on, "
            f"but {found} of them are in its stored runs",
            tensor=key,
        )
    return {"runs": tensors, "destination": _mcore.mapping.LocalNonpersistentObject(FlatDestination(flat, places))}


def correct_order(optimizer: Any) -> None:
    """Corrects the map from parameters to states if a parameter group has both 32-bit and 16-bit parameters.

    In such a group, the optimizer stores the states of 32-bit parameters first, but numbers all states in buffer order. Megatron
    would therefore assign the state of one parameter to a different parameter. All other groups are already in the right order.
    """
    order = {}
    for number, groups in enumerate(zip(optimizer.model_fp32_groups, optimizer.model_float16_groups, strict=True)):
        order.update({parameter: (number, at) for at, parameter in enumerate([*groups[0], *groups[1]])})
    if order.keys() == optimizer.model_param_group_index_map.keys():
        optimizer.model_param_group_index_map = order


def metadata_by_parameter(model_state: Any) -> dict[torch.Tensor, Any]:
    """Returns the metadata of each parameter in the sharded state dict of a model."""
    model_state, _ = _mcore.utils.extract_sharded_tensors_and_factories(model_state)
    return {sharded.data: sharded for sharded in _mcore.dict_utils.nested_values(model_state)}


def parameter_state(optimizer: Any, model_state: Any) -> dict[int, dict[str, Any]]:
    """Returns the state in the order in which load_parameter_state_from_fs_model_space expects parameters."""
    metadata_of = metadata_by_parameter(model_state)
    instance = getattr(optimizer, "distributed_optimizer_instance_id", 0)
    state: dict[int, dict[str, Any]] = {}
    for ranges in (bucket for per_dtype in optimizer.gbuf_ranges for buckets in per_dtype.values() for bucket in buckets):
        for parameter, at in ranges["param_map"].items():
            metadata = metadata_of.get(parameter)
            if metadata is None:
                raise InvalidArgumentError(
                    f"a parameter of shape {list(parameter.shape)} is not in the sharded state dict of the model; "
                    "make that with keep_vars=True"
                )
            begin = at["param"].start
            is_owner = instance == 0 and all(number == 0 for number in tuple(metadata.replica_id)[:-1])
            tensors = optimizer._get_main_param_and_optimizer_states(parameter)
            state[len(state)] = {
                name: _state_of(tensor, name, metadata, begin, is_owner)
                for name, tensor in tensors.items() if name != "step"
            }
    return state


def _wants_regions(kind: str | None, metadata: Any, is_loading: bool) -> bool:
    return kind in _TAKEN_OVER and not (is_loading and metadata.get(NATIVE, False))


def is_in_runs(state: Any) -> bool:
    """Tells whether a loaded param_state has the form that ``parameter_state`` builds."""
    return isinstance(state, dict) and any(
        isinstance(value, dict) and "destination" in value
        for of_parameter in state.values() if isinstance(of_parameter, dict) for value in of_parameter.values()
    )


def patch(optimizer_class: Any) -> dict[str, Any]:
    """Returns replacements for members of the class. The replacements call the current members."""
    make_native, load_native = optimizer_class.sharded_state_dict, optimizer_class.load_state_dict

    def sharded_state_dict(
        self: Any, model_sharded_state_dict: Any = None, is_loading: bool = False, sharding_type: str | None = None,
        metadata: Any = None,
    ) -> Any:
        model_state = model_sharded_state_dict or {}
        kind = sharding_type or (metadata or {}).get(_TYPE)
        if not _wants_regions(kind, metadata or {}, is_loading) or self.ddp_config.use_megatron_fsdp:
            return make_native(self, model_state, is_loading, sharding_type, metadata)
        correct_order(self)
        state = self.state_dict()
        if is_loading:
            self.load_state_dict(self.state_dict())  # creates the destination tensors
        state["param_state"] = parameter_state(self, model_state)
        state[OF_STATE] = _FORMAT
        return state

    def load_state_dict(self: Any, state_dict: Any) -> None:
        if not is_in_runs(state_dict.get("param_state")):
            return load_native(self, state_dict)  # type: ignore[no-any-return]
        load_native(self, {key: value for key, value in state_dict.items() if key not in (OF_STATE, "param_state")})
        self.load_parameter_state_from_fs_model_space(
            {number: {name: value["destination"].fill(value["runs"]) for name, value in of_parameter.items()}
             for number, of_parameter in state_dict["param_state"].items()}
        )
        return None

    return {"sharded_state_dict": sharded_state_dict, "load_state_dict": load_state_dict}


def stored(common: Any) -> Any:
    """Returns the stored form of a common state.

    The stored form has the name of a Megatron format, so that Megatron itself can load an exported checkpoint.
    """
    renamed = _renamed(common)
    metadata = renamed.get("content_metadata") if isinstance(renamed, dict) else None
    if isinstance(metadata, dict):
        metadata.pop(NATIVE, None)
        if _has_runs(common) and _TYPE in metadata:
            metadata[_TYPE] = _STORED_AS
    return renamed


def _renamed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _STORED_AS if key == OF_STATE and item == _FORMAT else _renamed(item) for key, item in value.items()}


def _has_runs(value: Any) -> bool:
    return isinstance(value, dict) and (value.get(OF_STATE) == _FORMAT or any(_has_runs(item) for item in value.values()))


def mark(common: dict[str, Any], is_ours: bool) -> dict[str, Any]:
    """Marks the metadata of a loaded common state if the optimizer state cannot be loaded as runs of parameters."""
    metadata = common.get("content_metadata")
    if isinstance(metadata, dict) and not (is_ours and metadata.get(_TYPE) == _STORED_AS):
        metadata[NATIVE] = True
    return common
