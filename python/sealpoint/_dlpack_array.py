# SPDX-License-Identifier: Apache-2.0
"""Arrays with dtypes of ml_dtypes. This module imports numpy, so import this module only to create arrays."""

from __future__ import annotations

from typing import Any

import numpy

from sealpoint import _dlpack
from sealpoint._dtypes import TO_NUMPY_CODE, name_of


class DlpackArray(numpy.ndarray[Any, Any]):
    """A numpy array that can export bfloat16 and 8-bit floats via DLPack. Plain numpy arrays cannot do so."""

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        name = name_of(self.dtype)
        if name is None or name in TO_NUMPY_CODE:  # a view with another dtype
            return super().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        request = _dlpack.request_of(stream, max_version, dl_device, copy)
        array = numpy.array(self) if request.copy else self
        return _dlpack.capsule(request, array, name, is_read_only=not array.flags.writeable, is_copied=array is not self)
