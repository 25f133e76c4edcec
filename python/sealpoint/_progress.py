# SPDX-License-Identifier: Apache-2.0
"""Progress line for notebooks. In a notebook, stderr is not a terminal, but the user sees its output."""

from __future__ import annotations

import sys
from collections.abc import Callable


def line_of_notebook() -> Callable[[str, int, int], None] | None:
    """Returns a callback that writes a progress line in a notebook. Returns None outside of notebooks."""
    stream = sys.stderr
    if stream is None or not type(stream).__module__.startswith("ipykernel."):
        return None
    shown = 0  # characters

    def show(what: str, bytes_done: int, bytes_total: int) -> None:
        nonlocal shown
        text = f"{what} {bytes_done / 1e6:,.0f} of {bytes_total / 1e6:,.0f} MB"
        if bytes_total > 0:
            text += f" ({100 * bytes_done // bytes_total} %)"
        is_over = bytes_done >= bytes_total > 0
        stream.write("\r" + text.ljust(shown) + ("\n" if is_over else ""))
        stream.flush()
        shown = 0 if is_over else len(text)

    return show
