# SPDX-License-Identifier: Apache-2.0
"""Conversion from and to other checkpoint formats. Needs no torch and runs no pickles.

    from sealpoint.interop import convert
    convert("checkpoint-of-dcp", "checkpoint")
    convert("checkpoint", "model", to="hf", match=["model.*"], rename=[("model.*", "*")])

On the command line: ``ckpt convert``, ``ckpt ls``. docs/guides/convert.md lists the content that each format keeps.
"""

from sealpoint.interop._convert import Format, Report, convert
from sealpoint.interop._open import open_source
from sealpoint.interop._source import FileInfo, LeftOut, State

__all__ = ["FileInfo", "Format", "LeftOut", "Report", "State", "convert", "open_source"]
