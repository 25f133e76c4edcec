# SPDX-License-Identifier: Apache-2.0
"""Dtypes of torch and their names in the specification."""

from __future__ import annotations

import torch

from sealpoint._dtypes import OF_TORCH

# Dtypes that the installed version of torch has.
NAME_OF: dict[torch.dtype, str] = {
    getattr(torch, torch_name): name for torch_name, name in OF_TORCH.items() if hasattr(torch, torch_name)
}
DTYPE_OF: dict[str, torch.dtype] = {name: dtype for dtype, name in NAME_OF.items()}
