# SPDX-License-Identifier: Apache-2.0
"""The class DTensor. It is not imported here, because this takes a second: only programs that use DTensor import it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_dtensor(value: Any) -> TypeGuard[DTensor]:
    """Tells whether a value is a DTensor. This cannot be the case before the program has imported DTensor."""
    module = sys.modules.get("torch.distributed.tensor")
    return isinstance(value, getattr(module, "DTensor", ()))
