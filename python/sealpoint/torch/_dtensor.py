# SPDX-License-Identifier: Apache-2.0
"""Tests for the class DTensor. This module does not import the class, because the import takes a second."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_dtensor(value: Any) -> TypeGuard[DTensor]:
    """Tells whether a value is a DTensor. Before the program has imported DTensor, no value is a DTensor."""
    module = sys.modules.get("torch.distributed.tensor")
    return isinstance(value, getattr(module, "DTensor", ()))
