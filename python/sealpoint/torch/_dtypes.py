# SPDX-License-Identifier: Apache-2.0
"""Dtypes of torch under the names of the specification."""

from __future__ import annotations

import torch

_NAMES = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex32": "c32",
    "complex64": "c64",
    "complex128": "c128",
    "float8_e4m3fn": "f8_e4m3fn",
    "float8_e5m2": "f8_e5m2",
    "float8_e4m3fnuz": "f8_e4m3fnuz",
    "float8_e5m2fnuz": "f8_e5m2fnuz",
    "float8_e8m0fnu": "f8_e8m0fnu",
    "float4_e2m1fn_x2": "f4_e2m1x2",
}
# Those that this torch has.
NAME_OF: dict[torch.dtype, str] = {
    getattr(torch, torch_name): name for torch_name, name in _NAMES.items() if hasattr(torch, torch_name)
}
DTYPE_OF: dict[str, torch.dtype] = {name: dtype for dtype, name in NAME_OF.items()}
