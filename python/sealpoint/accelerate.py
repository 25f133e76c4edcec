# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for Hugging Face Accelerate.

    checkpoints = AcceleratorCheckpointer(accelerator, "run", every=100, keep=3)
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, Unpack

from sealpoint import _sealpoint
from sealpoint._arguments import Provenance
from sealpoint._checkpoint import Path
from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint._save_future import SaveFuture
from sealpoint._tree import PerRank
from sealpoint.torch._checkpointer import Checkpointer
from sealpoint.torch._contract import Contract
from sealpoint.torch._load import State
from sealpoint.torch._options import CheckpointerKeywords, ResumeKeywords
from sealpoint.torch._random import random_states, set_random_states

try:
    _accelerate: Any = import_module("accelerate")
except ImportError as error:
    raise ImportError(f"sealpoint.accelerate needs accelerate, which cannot be imported: {error}") from error
# Per-rank values stay unchanged if a different number of ranks saved them. Everything else must match.
RESUME_CONTRACT = Contract(per_rank="report")


def check_supported(accelerator: Any) -> None:
    """Raises UnsupportedError if the Accelerator uses an engine that manages its own state."""
    kind = accelerator.distributed_type.name
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    if kind in ("DEEPSPEED", "MEGATRON_LM", "XLA"):
        raise UnsupportedError(f"accelerate runs {kind}, which keeps its own state; expected FSDP2, DDP or one process")
    if plugin is not None and plugin.fsdp_version != 2:
        raise UnsupportedError(
            f"fsdp_version is {plugin.fsdp_version}, which flattens parameters; expected 2 (fully_shard), DDP or one process"
        )


def unwrapped(model: Any) -> Any:
    """Returns the model without the wrappers of DDP and torch.compile, so that names do not depend on these wrappers."""
    return _accelerate.utils.extract_model_from_parallel(model, keep_torch_compile=False)


class AcceleratorCheckpointer(Checkpointer):
    """A ``sealpoint.torch.Checkpointer`` that saves all objects that an Accelerator has prepared.

    Saves models, optimizers, schedulers, scaler, data loader positions, objects passed to ``register_for_checkpointing``, and
    the random generators of each rank.

    Each rank saves its own part in the background. A job with any number of ranks can resume. Use this class instead of
    ``Accelerator.save_state``, which gathers or pickles the state before a hook can save it. Collective: all ranks call all
    methods, after they have called ``prepare``.

    Args:
        accelerator: An Accelerator with one process, DDP or FSDP2.
        directory: Directory or URL of the series, created if missing.
        every, keep, keep_best, keep_every, keep_checked, wait, on_error, on_sigterm, options: As for
            ``sealpoint.torch.Checkpointer``.

    ``step``, ``save`` and ``resume`` accept a mapping with additional state, such as {"epoch": 3}; ``resume`` fills the mapping. If
    a job resumes with a different number of ranks, random generators and stateful data loaders keep their current state, and a
    warning is logged ("sealpoint").

    Raises:
        UnsupportedError: the Accelerator uses DeepSpeed, Megatron-LM, XLA or FSDP1.
        Error: as for ``Checkpointer``.

    Examples:
        >>> import torch
        >>> from accelerate import Accelerator
        >>> from sealpoint.accelerate import AcceleratorCheckpointer
        >>> accelerator = Accelerator(cpu=True)
        >>> model = accelerator.prepare(torch.nn.Linear(4, 4))
        >>> with AcceleratorCheckpointer(accelerator, "run", every=2, keep=2) as checkpoints:
        ...     for step in range((checkpoints.resume() or 0) + 1, 5):
        ...         _ = checkpoints.step(step)
        >>> AcceleratorCheckpointer(accelerator, "run").resume()  # in the next job
        4
    """

    def __init__(
        self,
        accelerator: Any,
        directory: Path,
        *,
        every: int | str | datetime.timedelta = 1,
        keep: int | None = None,
        keep_best: tuple[str, Literal["least", "greatest"], int] | None = None,
        keep_every: int | None = None,
        keep_checked: int = 0,
        wait: bool = False,
        on_error: Literal["raise", "warn"] = "raise",
        on_sigterm: Literal["exit", "save"] | None = "exit",
        **options: Unpack[CheckpointerKeywords],
    ) -> None:
        if not isinstance(accelerator, _accelerate.Accelerator):
            raise InvalidArgumentError(f"accelerator is {accelerator!r:.80}, expected an Accelerator of accelerate")
        check_supported(accelerator)
        super().__init__(directory, every=every, keep=keep, keep_best=keep_best, keep_every=keep_every,
                         keep_checked=keep_checked, wait=wait, on_error=on_error, on_sigterm=on_sigterm, **options)
        self._accelerator = accelerator

    def state(self, more: Any = None) -> dict[str, Any]:
        """Returns the state that ``save`` stores and ``resume`` fills. ``more`` is the additional state. Not collective."""
        of = self._accelerator
        state = {
            "models": [unwrapped(model) for model in of._models],
            "optimizers": list(of._optimizers),
            "schedulers": list(of._schedulers),
            "loaders": [_Loader(loader) for loader in of._dataloaders],
            "objects": list(of._custom_objects),
            "accumulated": _Attribute(of, "step"),
            "rng": PerRank(random_states()),
        }
        if of.scaler is not None:
            state["scaler"] = of.scaler
        if more is not None:
            state["more"] = more
        return state

    def step(
        self, step: int, state_dict: Mapping[Any, Any] | None = None, *, provenance: Provenance | None = None
    ) -> SaveFuture | _sealpoint.CommitInfo | None:
        """Saves if a save is due, as ``sealpoint.torch.Checkpointer.step`` does. ``state_dict`` is the additional state."""
        return super().step(step, state_dict, provenance=provenance)  # type: ignore[arg-type]  # goes to save()

    def save(
        self, step: int, state_dict: Mapping[Any, Any] | None = None, *, provenance: Provenance | None = None
    ) -> SaveFuture | _sealpoint.CommitInfo | None:
        """Saves now, as ``sealpoint.torch.Checkpointer.save`` does. ``state_dict`` is the additional state."""
        return super().save(step, self.state(state_dict), provenance=provenance)

    def resume(
        self, state_dict: State | None = None, *, required: bool = False, require: Literal["checked"] | None = None,
        allow_foreign: bool = False, **options: Unpack[ResumeKeywords]
    ) -> int | None:
        """Loads the newest checkpoint, as ``sealpoint.torch.Checkpointer.resume`` does, and returns its step, or None.

        Args:
            state_dict: Additional state to fill.
            required, require, allow_foreign, options: As for ``sealpoint.torch.Checkpointer.resume``.
        """
        state = self.state(state_dict)
        options.setdefault("contract", RESUME_CONTRACT)
        step = super().resume(state, required=required, require=require, allow_foreign=allow_foreign, **options)
        if step is not None:
            set_random_states(state["rng"].value)
        return step


class _Attribute:
    """Wraps one numeric attribute of an object, so that the attribute has its own ``state_dict``."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name

    def state_dict(self) -> dict[str, Any]:
        return {self._name: getattr(self._owner, self._name)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        setattr(self._owner, self._name, state[self._name])


class _Loader(_Attribute):
    """The state of a data loader: its epoch and, if the loader is stateful, the position of each rank."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader, "iteration")
        self._loader = loader
        self._is_stateful = bool(getattr(loader, "use_stateful_dataloader", False))

    def state_dict(self) -> dict[str, Any]:
        seen = {"seen": PerRank(self._loader.state_dict())} if self._is_stateful else {}
        return {**super().state_dict(), **seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        if self._is_stateful:
            self._loader.load_state_dict(state["seen"].value)


__all__ = ["AcceleratorCheckpointer"]
