# SPDX-License-Identifier: Apache-2.0
"""Dtypes of other formats under the names of the specification."""

from __future__ import annotations

ITEM_SIZE = {
    "bool": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "f16": 2, "bf16": 2, "f32": 4,
    "f64": 8, "c64": 8, "c128": 16, "f8_e4m3fn": 1, "f8_e5m2": 1, "f8_e4m3fnuz": 1, "f8_e5m2fnuz": 1, "f8_e8m0fnu": 1,
    "f4_e2m1x2": 1, "c32": 4,
}  # fmt: skip

# Names in the module torch.
OF_TORCH = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex32": "c32", "complex64": "c64", "complex128": "c128", "float8_e4m3fn": "f8_e4m3fn", "float8_e5m2": "f8_e5m2",
    "float8_e4m3fnuz": "f8_e4m3fnuz", "float8_e5m2fnuz": "f8_e5m2fnuz", "float8_e8m0fnu": "f8_e8m0fnu",
    "float4_e2m1fn_x2": "f4_e2m1x2",
}  # fmt: skip
TO_TORCH = {name: torch_name for torch_name, name in OF_TORCH.items()}

# Classes of storages in the module torch; other dtypes have untyped ones.
OF_STORAGE = {
    "FloatStorage": "f32", "DoubleStorage": "f64", "HalfStorage": "f16", "BFloat16Storage": "bf16", "LongStorage": "i64",
    "IntStorage": "i32", "ShortStorage": "i16", "CharStorage": "i8", "ByteStorage": "u8", "BoolStorage": "bool",
    "ComplexHalfStorage": "c32", "ComplexFloatStorage": "c64", "ComplexDoubleStorage": "c128",
}  # fmt: skip
# torch itself has no class for storages of complex32, though older files name one.
TO_STORAGE = {name: storage for storage, name in OF_STORAGE.items() if name != "c32"}

OF_SAFETENSORS = {
    "BOOL": "bool", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64", "U8": "u8", "U16": "u16", "U32": "u32",
    "U64": "u64",
    "F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64", "C64": "c64", "F8_E4M3": "f8_e4m3fn", "F8_E5M2": "f8_e5m2",
    "F8_E4M3FNUZ": "f8_e4m3fnuz", "F8_E5M2FNUZ": "f8_e5m2fnuz", "F8_E8M0": "f8_e8m0fnu", "F4": "f4_e2m1x2",
}  # fmt: skip
TO_SAFETENSORS = {name: other for other, name in OF_SAFETENSORS.items()}

OF_NUMPY_CODE = {
    "b1": "bool", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64",
    "f2": "f16", "f4": "f32", "f8": "f64", "c8": "c64", "c16": "c128",
}  # fmt: skip
TO_NUMPY_CODE = {name: code for code, name in OF_NUMPY_CODE.items()}
