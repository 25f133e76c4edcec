# SPDX-License-Identifier: Apache-2.0
"""What a foreign checkpoint may cost to read: docs/guides/convert.md states it, and ckpt ls counts the same."""

from __future__ import annotations

from sealpoint._errors import LimitExceededError


class Budget:
    """Memory for what files describe. Not thread-safe."""

    __slots__ = ("max", "used")

    def __init__(self, bytes_max: int | None) -> None:
        """None: without a bound."""
        self.max, self.used = bytes_max, 0

    def add(self, cost: int, path: str) -> None:
        """So many bytes more. Errors: LimitExceededError."""
        self.used += cost
        if self.max is not None and self.used > self.max:
            raise LimitExceededError(
                f"what it describes takes more than {self.max} bytes of memory; --metadata-memory (metadata_memory_bytes) "
                "allows more",
                path=path,
            )
