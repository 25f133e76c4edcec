# SPDX-License-Identifier: Apache-2.0
"""Dtypes of the specification and their numpy equivalents. The module imports numpy lazily."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

from sealpoint._sealpoint import foreign_dtypes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_ROWS = foreign_dtypes()
ITEM_SIZE = {name: size for name, size, *_ in _ROWS}
# Dtype names in the module torch.
TO_TORCH = {name: torch_name for name, _, torch_name, _, _ in _ROWS}
OF_TORCH = {torch_name: name for name, torch_name in TO_TORCH.items()}
# Storage classes in the module torch. Dtypes that are not listed have untyped storages.
TO_STORAGE = {name: storage for name, _, _, storage, _ in _ROWS if storage}
# Dtypes that numpy provides.
TO_NUMPY_CODE = {name: code for name, _, _, _, code in _ROWS if code}
# Dtypes that ml_dtypes provides. Arrays of f4_e2m1x2 and complex32 are bytes; ml_dtypes added complex32 only recently.
_OF_ML_DTYPES = TO_TORCH.keys() - TO_NUMPY_CODE.keys() - {"c32", "f4_e2m1x2"}


def numpy() -> Any:
    """Returns the module numpy. If numpy is missing, raises an ImportError that lists the features that work without numpy."""
    try:
        return importlib.import_module("numpy")
    except ImportError as error:
        raise ImportError(
            "sealpoint needs numpy to make arrays (pip install 'sealpoint[numpy]'); without numpy, use read(out=...) with your "
            "own buffer, or tobytes()"
        ) from error


@cache
def numpy_dtype(name: str) -> Any:
    """Returns the numpy dtype for a dtype name of the specification, or None if neither numpy nor ml_dtypes has it."""
    if name in TO_NUMPY_CODE:
        return numpy().dtype(TO_NUMPY_CODE[name])
    if name in _OF_ML_DTYPES:
        try:
            ml_dtypes = importlib.import_module("ml_dtypes")
        except ImportError:
            return None
        scalar = getattr(ml_dtypes, TO_TORCH[name], None)
        return None if scalar is None else numpy().dtype(scalar)
    return None


def name_of(dtype: Any) -> str | None:
    """Returns the specification's name for a dtype of numpy or ml_dtypes, or None if the specification does not have the dtype."""
    name = OF_TORCH.get(dtype.name)
    return name if name in TO_NUMPY_CODE or name in _OF_ML_DTYPES else None
