# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for Megatron-Bridge, through its setting for checkpoint managers.

    import sealpoint.megatron.bridge  # in the script; Megatron-Bridge accepts only classes of modules that are registered

    checkpoint:
      custom_manager_class: sealpoint.megatron.bridge.SealpointCheckpointManager
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from sealpoint import _paths, megatron
from sealpoint._errors import UnsupportedError
from sealpoint.megatron._options import EnableKeywords

try:
    _checkpointing: Any = import_module("megatron.bridge.training.checkpointing")
    _instantiate: Any = import_module("megatron.bridge.utils.instantiate_utils")
except ImportError as error:
    raise ImportError(f"sealpoint.megatron.bridge needs megatron-bridge, which cannot be imported: {error}") from error

if hasattr(_instantiate, "register_allowed_target_prefix"):
    _instantiate.register_allowed_target_prefix(f"{__name__}.")
_FORMAT = "torch_dist"
# Megatron-Bridge looks up and writes files of its own in these directories.
_DIRECTORIES = ("save", "load", "pretrained_checkpoint", "non_persistent_global_ckpt_dir")


class SealpointCheckpointManager(_checkpointing.DefaultCheckpointManager):  # type: ignore[misc]
    """A Megatron-Bridge checkpoint manager that saves and loads Sealpoint checkpoints.

    All settings keep their meaning. Bridge writes its own files, such as ``train_state.pt``, next to the files of the checkpoint,
    and deletes old checkpoints by ``most_recent_k``. Bridge's existing checkpoints can still be loaded. The manager calls
    ``sealpoint.megatron.enable``, unless the script has called it. All ranks create it and call its methods, like those of Bridge's
    own manager.

    Attributes:
        options: Keywords of ``sealpoint.megatron.enable``. Set them in a subclass, and name this subclass in the configuration.

    Raises:
        UnsupportedError: ``ckpt_format`` is not ``torch_dist``, or a directory is a URL.

    Examples:
        >>> from sealpoint.megatron.bridge import SealpointCheckpointManager
        >>> class Compressed(SealpointCheckpointManager):
        ...     options = {"codec": "zstd"}
    """

    options: ClassVar[EnableKeywords] = {}

    def __init__(self, checkpoint_config: Any) -> None:
        self._check(checkpoint_config)
        super().__init__(checkpoint_config)
        if self.options or not megatron.status().is_enabled:
            megatron.enable(**self.options)

    def _check(self, config: Any) -> None:
        if config.ckpt_format != _FORMAT:
            raise UnsupportedError(
                f"checkpoint.ckpt_format is {config.ckpt_format!r}, expected {_FORMAT!r}; sealpoint.torch.save stores the DTensors "
                "of fsdp_dtensor"
            )
        for name in _DIRECTORIES:
            if (path := getattr(config, name, None)) is not None:
                _paths.local(str(path), f"checkpoint.{name}", "Megatron-Bridge writes files of its own there")

    def save(self, ctx: Any, callback_manager: Any = None) -> None:
        """Saves, or starts to save if ``async_save`` is set. Raises the errors of ``sealpoint.torch.save`` on all ranks.

        Args:
            ctx: Bridge's CheckpointSaveContext.
            callback_manager: Bridge's callbacks, which it calls when the checkpoint is durable.
        """
        self._check(ctx.state.cfg.checkpoint)
        super().save(ctx, callback_manager)

    def load(self, ctx: Any) -> tuple[int, int]:
        """Loads the checkpoint in Bridge's tracker. Returns the iteration and the number of floating-point operations so far.

        Raises the errors of ``sealpoint.torch.load`` on all ranks.
        """
        self._check(ctx.state.cfg.checkpoint)
        found: tuple[int, int] = super().load(ctx)
        return found


__all__ = ["SealpointCheckpointManager"]
