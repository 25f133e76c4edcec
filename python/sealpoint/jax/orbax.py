# SPDX-License-Identifier: Apache-2.0
"""Sealpoint as an Orbax checkpointable handler. Orbax keeps control of steps, names and retention.

    from orbax.checkpoint.experimental import v1 as ocp
    import sealpoint.jax.orbax

    registry = ocp.handlers.local_registry().add(sealpoint.jax.orbax.Handler, checkpointable_name="train")
    context = ocp.Context()
    context.checkpointables.registry = registry
    with context:
        ocp.save_checkpointables(path, {"train": state})
        state = ocp.load_checkpointables(path, {"train": like})["train"]
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import Any

from sealpoint import _tree
from sealpoint._checkpoint import open as open_checkpoint
from sealpoint.jax import _arrays
from sealpoint.jax._jax import jax
from sealpoint.jax._load import load
from sealpoint.jax._save import save_async


class Handler:
    """An Orbax ``CheckpointableHandler``.

    Each save is a complete checkpoint of this library in Orbax's directory of that name, with its own marker and digests:
    ``ckpt verify`` checks it, and ``sealpoint.jax.load`` or any other reader loads it. ``save`` returns to the training
    once the arrays are copied.
    """

    async def save(self, directory: Any, checkpointable: Any) -> Awaitable[None]:
        path = await directory.await_creation()
        future = save_async(checkpointable, os.fspath(path))

        async def end() -> None:
            await asyncio.wrap_future(future)

        return end()

    async def load(self, directory: Any, abstract_checkpointable: Any = None) -> Awaitable[Any]:
        """Loads a pytree. Without an abstract state, as ``metadata`` describes it, on the first device of this process."""
        like = await self.metadata(directory) if abstract_checkpointable is None else abstract_checkpointable
        state = load(os.fspath(directory), like)

        async def end() -> Any:
            return state

        return end()

    async def metadata(self, directory: Any) -> Any:
        """Returns the stored state, with a jax.ShapeDtypeStruct for each array."""
        with open_checkpoint(os.fspath(directory)) as checkpoint:

            def like(name: str) -> Any:
                return _arrays.stored_like(tuple(checkpoint[name].shape), checkpoint[name].dtype_name, name)

            return _tree.Decoder(like).decode(_tree.parse(bytes(checkpoint.objects[_tree.OBJECT])))

    def is_handleable(self, checkpointable: Any) -> bool:
        leaves = jax.tree_util.tree_leaves(checkpointable)
        return leaves != [checkpointable] and any(_arrays.is_array(leaf) for leaf in leaves)

    def is_abstract_handleable(self, abstract_checkpointable: Any) -> bool | None:
        leaves = jax.tree_util.tree_leaves(abstract_checkpointable)
        return leaves != [abstract_checkpointable] and any(hasattr(leaf, "shape") for leaf in leaves)
