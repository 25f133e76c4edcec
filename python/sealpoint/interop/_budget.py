# SPDX-License-Identifier: Apache-2.0
"""What a foreign checkpoint may cost to read: docs/convert.md states it, and ckpt-inspect counts the same."""

from __future__ import annotations

from sealpoint._errors import LimitExceededError

MEMORY_BYTES = 64 << 20


class Budget:
    """Memory for what files describe: as much as the files have bytes, and 64 MiB. Not thread-safe."""

    __slots__ = ("max", "used")

    def __init__(self) -> None:
        self.max, self.used = MEMORY_BYTES, 0

    def allow(self, file_bytes: int) -> None:
        """The files of the checkpoint have so many bytes."""
        self.max = MEMORY_BYTES + file_bytes

    def add(self, cost: int, path: str) -> None:
        """So many bytes more. Errors: LimitExceededError."""
        self.used += cost
        if self.used > self.max:
            raise self.exceeded(path)

    def exceeded(self, path: str) -> LimitExceededError:
        return LimitExceededError(
            f"its values take more than {self.max} bytes of memory, which is what its files have and {MEMORY_BYTES}",
            path=path,
        )
