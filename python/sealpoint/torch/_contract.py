# SPDX-License-Identifier: Apache-2.0
"""Contract for a load."""

from __future__ import annotations

from sealpoint._checkpoint import OnMismatch
from sealpoint._errors import InvalidArgumentError


class Contract:
    """Actions for differences between a state dict and a checkpoint. Each action is "error", "report" or "allow".

    Args:
        missing: A value of the state is not stored. "report" and "allow" leave the value unchanged.
        unexpected: A stored name is in no rank's state.
        shape, coverage: For tensors, as for ``Checkpoint.read``.
        dtype: The dtype of a tensor differs. Elements are converted only if the option ``convert`` of ``load`` is set.
        kind: State or checkpoint has a tensor where the other has a value of a different kind, or a list has a
            different length. "report" and "allow" leave the state unchanged.
        per_rank: A different number of ranks saved ``per_rank`` values. "report" and "allow" leave these values
            unchanged.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> _ = sp.save({"w": torch.ones(2)}, "checkpoint")
        >>> state = {"w": torch.zeros(2), "new": torch.zeros(2)}
        >>> sp.load(state, "checkpoint", contract=sp.Contract(missing="report")).findings[0][:2]
        ('missing', 'new')
    """

    def __init__(
        self,
        missing: OnMismatch = "error",
        unexpected: OnMismatch = "error",
        dtype: OnMismatch = "error",
        shape: OnMismatch = "error",
        coverage: OnMismatch = "allow",
        kind: OnMismatch = "error",
        per_rank: OnMismatch = "error",
    ) -> None:
        self.missing, self.unexpected, self.dtype, self.shape = missing, unexpected, dtype, shape
        self.coverage, self.kind, self.per_rank = coverage, kind, per_rank
        for name, value in vars(self).items():
            if value not in ("error", "report", "allow"):
                raise InvalidArgumentError(f"{name} is {value!r}, expected error, report or allow")

    def __repr__(self) -> str:
        return f"Contract({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @staticmethod
    def partial() -> Contract:
        """Returns a contract for loading a part of a checkpoint: stored names that the state does not have are allowed.

        Not collective. Raises nothing.
        """
        return Contract(unexpected="allow")
