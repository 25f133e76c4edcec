# SPDX-License-Identifier: Apache-2.0
"""Imports jax. If the import fails, the ImportError names the feature that needs jax."""

from __future__ import annotations

from importlib import import_module
from typing import Any

try:
    jax: Any = import_module("jax")
    # The client of the coordination service has no public name yet. Orbax also imports the client from this module.
    distributed: Any = import_module("jax._src.distributed")
except ImportError as error:
    raise ImportError(f"sealpoint.jax needs JAX (pip install jax), which cannot be imported: {error}") from error
