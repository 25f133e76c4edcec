# SPDX-License-Identifier: Apache-2.0
"""What a save would refuse, before the training."""

from __future__ import annotations

from typing import Any

import torch

from sealpoint._keywords import refuses_unknown
from sealpoint.torch._aliases import FirstNames
from sealpoint.torch._arguments import check as check_arguments
from sealpoint.torch._options import SaveOptions
from sealpoint.torch._state import Collected


@refuses_unknown
def check(state_dict: Any, *, allow_pickle: bool = False) -> None:
    """Raises the error that ``save`` would raise for the values and tensors in a state of this process.

    Call it before the training with what its saves will have; it writes nothing. This process alone calls it: differences
    between ranks, and what an optimizer makes in its first step, are found by the save.

    Args:
        state_dict, allow_pickle: as for ``save``.

    Errors: InvalidArgumentError, UnsupportedError; one error names all values that cannot be saved, by their paths.

        >>> sp.check({"model": model, "optimizer": optimizer, "args": vars(args)})
    """
    check_arguments(allow_pickle=allow_pickle)
    with torch.no_grad():
        Collected(state_dict, 0, 1, SaveOptions(allow_pickle=allow_pickle), FirstNames(True))
