# SPDX-License-Identifier: Apache-2.0
"""Dtypes: names of the specification, and what numpy has for them. numpy is imported when it is needed."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

# Name in the specification -> name in numpy.
_NUMPY = {
    "bool": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}
# -> name in ml_dtypes. There is none for f4_e2m1x2, whose element is a byte of two values, and none for c32.
_ML_DTYPES = {
    "bf16": "bfloat16",
    "f8_e4m3fn": "float8_e4m3fn",
    "f8_e5m2": "float8_e5m2",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f8_e8m0fnu": "float8_e8m0fnu",
}


def numpy() -> Any:
    """The module numpy, or an ImportError that says what works without it."""
    try:
        return importlib.import_module("numpy")
    except ImportError as error:
        raise ImportError(
            "sealpoint needs numpy to make arrays (pip install 'sealpoint[numpy]'); without it use "
            "read(out=...) with a buffer of your own, or tobytes()"
        ) from error


@cache
def numpy_dtype(name: str) -> Any:
    """numpy's dtype of this name of the specification; None if neither numpy nor ml_dtypes has one."""
    if name in _NUMPY:
        return numpy().dtype(_NUMPY[name])
    if name in _ML_DTYPES:
        try:
            ml_dtypes = importlib.import_module("ml_dtypes")
        except ImportError:
            return None
        scalar = getattr(ml_dtypes, _ML_DTYPES[name], None)
        return None if scalar is None else numpy().dtype(scalar)
    return None


def name_of(dtype: Any) -> str | None:
    """The name in the specification of a dtype of numpy or ml_dtypes; None if it has none."""
    for names in (_NUMPY, _ML_DTYPES):
        for name, other in names.items():
            if dtype.name == other:
                return name
    return None
