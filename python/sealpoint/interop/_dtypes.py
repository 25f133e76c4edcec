# SPDX-License-Identifier: Apache-2.0
"""Dtypes of other formats, and their names in the specification."""

from __future__ import annotations

from sealpoint._dtypes import ITEM_SIZE as ITEM_SIZE
from sealpoint._dtypes import OF_TORCH as OF_TORCH
from sealpoint._dtypes import TO_NUMPY_CODE as TO_NUMPY_CODE
from sealpoint._dtypes import TO_STORAGE as _TO_STORAGE
from sealpoint._dtypes import TO_TORCH as TO_TORCH

# torch has no storage class for complex32, although older files name such a class.
TO_STORAGE = {name: storage for name, storage in _TO_STORAGE.items() if name != "c32"}

OF_SAFETENSORS = {
    "BOOL": "bool", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64", "U8": "u8", "U16": "u16", "U32": "u32",
    "U64": "u64",
    "F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64", "C64": "c64", "F8_E4M3": "f8_e4m3fn", "F8_E5M2": "f8_e5m2",
    "F8_E4M3FNUZ": "f8_e4m3fnuz", "F8_E5M2FNUZ": "f8_e5m2fnuz", "F8_E8M0": "f8_e8m0fnu", "F4": "f4_e2m1x2",
}  # fmt: skip
TO_SAFETENSORS = {name: other for other, name in OF_SAFETENSORS.items()}
