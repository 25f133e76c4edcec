# SPDX-License-Identifier: Apache-2.0
"""Versions of weights in verl, as the checkpoint engine "sealpoint". verl imports this module, which registers the engine.

    actor_rollout_ref.rollout.checkpoint_engine:
      backend: sealpoint
      custom_backend_module: sealpoint.weights.verl
      engine_kwargs: {sealpoint: {place: s3://bucket/run/weights}}
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterable, Mapping
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist

from sealpoint._errors import InvalidArgumentError
from sealpoint._rules import is_integer
from sealpoint._series import Series
from sealpoint.torch._session import session_of
from sealpoint.weights._engine import Receiver
from sealpoint.weights._publisher import Publisher

BACKEND = "sealpoint"

_base: Any = import_module("verl.checkpoint_engine.base")
_device: Any = import_module("verl.utils.device")


class SealpointCheckpointEngine(_base.CheckpointEngineWithCache):  # type: ignore[misc]
    """Publishes the trainer's weights, and hands them to the rollout workers.

    Args: See docs/guides/weights_engines.md. verl sets ``bucket_size``, which is not used, and ``is_master``. ``process_group``:
    workers of this side, which make the same calls.
    """

    def __init__(
        self, bucket_size: int, is_master: bool = False, *, place: str, timeout: float = 600.0, verify: bool = True,
        threads: int | None = None, host_folder: str | None = None, process_group: dist.ProcessGroup | None = None,
        publish: Mapping[str, Any] | None = None,
    ) -> None:
        self._is_master, self._place, self._verify, self._group = is_master, place, verify, process_group
        self._follow: dict[str, Any] = {"timeout": timeout, "threads": threads, "host_folder": host_folder,
                                        "process_group": process_group}  # fmt: skip
        self._publish = dict(publish or {})
        self._after: int | None = None

    @functools.cached_property
    def _receiver(self) -> Receiver:
        return Receiver(self._place, **self._follow)

    @functools.cached_property
    def _publisher(self) -> Publisher:
        return Publisher(self._place, process_group=self._group, **self._publish)

    def prepare(self) -> int | None:
        """Returns the newest sequence number, on the trainer's rank 0: a place may have the same step of an earlier run."""
        return max((entry.sequence for entry in Series(self._place).list()), default=-1) if self._is_master else None

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[int | None]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        return {"after": [metadata[0]] * actor_wg_world_size}, {"after": [metadata[0]] * rollout_world_size}

    def init_process_group(self, *, after: int | None) -> None:
        """Connects nothing: trainer and rollout meet at the place."""
        self._after = after

    def finalize(self) -> None:
        """Does nothing: the memory of the host is kept for the next delta."""

    @torch.no_grad()
    async def send_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None
    ) -> dict[str, float]:
        """Publishes the weights; each rank stores an equal share. All ranks iterate, since verl gathers each tensor."""
        session = session_of(self._group)
        shares, held = [0] * session.size, {}
        for name, tensor in weights:
            owner = shares.index(min(shares))
            shares[owner] += tensor.nbytes
            if owner == session.rank:
                held[name] = tensor.to("cpu", copy=True)
        done = await asyncio.to_thread(self._publisher.publish, held, _version(global_steps))
        return {"sealpoint/bytes_written": float(done.bytes_written), "sealpoint/publish_seconds": done.seconds}

    async def receive_weights(self, global_steps: int | None = None) -> AsyncIterator[tuple[str, torch.Tensor]]:
        """Waits for the version, and yields its weights when all workers of this rollout have it."""
        version, after = _version(global_steps), -1 if self._after is None else self._after
        await asyncio.to_thread(self._receiver.fetch, version, after=after, prove=self._verify)
        async for item in self.get_weights():
            yield item

    async def get_weights(self) -> AsyncIterator[tuple[str, torch.Tensor]]:
        """Yields the weights of the version that this host has, on the device of this worker."""
        for name, tensor in self._receiver.follower.torch_tensors().items():
            yield name, tensor.to(_device.get_device_name())


def _version(global_steps: int | None) -> int:
    if not is_integer(global_steps):
        raise InvalidArgumentError(f"global_steps is {global_steps!r}, expected the number of the version")
    return int(global_steps)  # type: ignore[arg-type]


_base.CheckpointEngineRegistry.register(BACKEND)(SealpointCheckpointEngine)


__all__ = ["SealpointCheckpointEngine"]
