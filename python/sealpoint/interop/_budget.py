# SPDX-License-Identifier: Apache-2.0
"""Memory limit for reading a checkpoint of a different format, as in docs/guides/convert.md. ``ckpt ls`` has the same limit."""

from __future__ import annotations

from sealpoint._errors import LimitExceededError


class Budget:
    """Limits the memory for the description of a checkpoint. Not thread-safe."""

    __slots__ = ("max", "used")

    def __init__(self, bytes_max: int | None) -> None:
        """Creates a budget. None: unlimited."""
        self.max, self.used = bytes_max, 0

    def add(self, cost: int, path: str) -> None:
        """Adds bytes. Raises LimitExceededError."""
        self.used += cost
        if self.max is not None and self.used > self.max:
            raise LimitExceededError(
                f"its metadata takes more than {self.max} bytes of memory; --metadata-memory (metadata_memory_bytes) "
                "allows more",
                path=path,
            )
