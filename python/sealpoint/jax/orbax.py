# SPDX-License-Identifier: Apache-2.0
"""Sealpoint as a checkpointable handler for Orbax. Orbax keeps control of steps, names and retention.

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

    Each save writes a complete Sealpoint checkpoint, with its own marker and digests, into Orbax's directory for the
    checkpointable. ``ckpt verify`` checks this checkpoint, and all readers, such as ``sealpoint.jax.load``, can load it. ``save``
    returns once the arrays are copied, so that training continues. Collective: Orbax calls all methods on all processes.

    Raises:
        Error: as for ``sealpoint.jax.save_async`` and ``sealpoint.jax.load``.

    Examples:
        >>> import os, jax.numpy, sealpoint.jax.orbax
        >>> from orbax.checkpoint.experimental import v1 as ocp
        >>> context = ocp.Context()
        >>> context.checkpointables.registry = ocp.handlers.local_registry().add(
        ...     sealpoint.jax.orbax.Handler, checkpointable_name="train")
        >>> with context:
        ...     ocp.save_checkpointables(os.path.abspath("step-100"), {"train": {"w": jax.numpy.ones(3)}})
        ...     ocp.load_checkpointables(os.path.abspath("step-100"))["train"]
        {'w': Array([1., 1., 1.], dtype=float32)}
    """

    async def save(self, directory: Any, checkpointable: Any) -> Awaitable[None]:
        """Starts to save a pytree. The returned awaitable completes when the checkpoint is durable."""
        path = await directory.await_creation()
        future = save_async(checkpointable, os.fspath(path))

        async def end() -> None:
            await asyncio.wrap_future(future)

        return end()

    async def load(self, directory: Any, abstract_checkpointable: Any = None) -> Awaitable[Any]:
        """Loads a pytree.

        If no abstract state is passed, the pytree has the structure that ``metadata`` returns, and its arrays are on the first
        device of this process.
        """
        like = await self.metadata(directory) if abstract_checkpointable is None else abstract_checkpointable
        state = load(os.fspath(directory), like)

        async def end() -> Any:
            return state

        return end()

    async def metadata(self, directory: Any) -> Any:
        """Returns the structure and the values of the stored state, with a jax.ShapeDtypeStruct for each array."""
        with open_checkpoint(os.fspath(directory)) as checkpoint:

            def like(name: str) -> Any:
                return _arrays.stored_like(tuple(checkpoint[name].shape), checkpoint[name].dtype_name, name)

            return _tree.Decoder(like).decode(_tree.parse(bytes(checkpoint.objects[_tree.OBJECT])))

    def is_handleable(self, checkpointable: Any) -> bool:
        """Returns whether the value is a pytree with at least one array. Not collective."""
        leaves = jax.tree_util.tree_leaves(checkpointable)
        return leaves != [checkpointable] and any(_arrays.is_array(leaf) for leaf in leaves)

    def is_abstract_handleable(self, abstract_checkpointable: Any) -> bool | None:
        """Returns whether the value is a pytree with at least one leaf that has a shape. Not collective."""
        leaves = jax.tree_util.tree_leaves(abstract_checkpointable)
        return leaves != [abstract_checkpointable] and any(hasattr(leaf, "shape") for leaf in leaves)


__all__ = ["Handler"]
