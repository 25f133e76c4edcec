# SPDX-License-Identifier: Apache-2.0
"""The message of ``import sealpoint`` if the extension module cannot be imported."""

from __future__ import annotations

import platform
import sys


def _interpreter() -> str:
    """Describes the interpreter, for example "CPython 3.13t on Linux x86_64"."""
    free_threaded = "t" if "t" in getattr(sys, "abiflags", "") else ""
    version = f"{sys.version_info.major}.{sys.version_info.minor}{free_threaded}"
    system = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
    return f"{platform.python_implementation()} {version} on {system} {platform.machine()}".rstrip()


def without_extension(error: ImportError) -> str:
    """Explains a failed import: lists the supported platforms, a remedy, and the features that work without the extension."""
    if sys.platform == "linux":
        remedy = "install a wheel for this interpreter, or build one with `pip install .` in a clone"
    else:
        remedy = "use it on Linux"
    return (
        f"sealpoint saves, loads and converts checkpoints by its extension, which {_interpreter()} cannot import ({error}); "
        f"{remedy}; the slower reference reader can verify, list and read checkpoints: "
        "`python3 -m sealpoint_reference --help` in readers/reference of the sources"
    )
