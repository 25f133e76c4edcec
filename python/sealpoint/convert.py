# SPDX-License-Identifier: Apache-2.0
"""Former name of the module ``sealpoint.interop``, kept for one release."""

import warnings

from sealpoint.interop import FileInfo, Format, LeftOut, Report, State, convert, open_source

__all__ = ["FileInfo", "Format", "LeftOut", "Report", "State", "convert", "open_source"]

warnings.warn("sealpoint.convert is now sealpoint.interop", DeprecationWarning, stacklevel=2)
