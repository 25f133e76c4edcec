# SPDX-License-Identifier: Apache-2.0
"""Checks, before training, whether a state can be saved."""

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
    """Raises the error that ``save`` would raise for the values and tensors in this process's state.

    Call this function before training, with the state to be saved. It writes nothing. It is not collective, so it cannot detect
    differences between ranks. It also cannot check optimizer state, if the first step has not created this state yet. A save
    detects both problems.

    Args:
        state_dict, allow_pickle: As for ``save``.

    Raises:
        InvalidArgumentError: the state has an invalid value.
        UnsupportedError: the state has values that cannot be saved. The error lists the paths of all these values.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> sp.check({"model": torch.nn.Linear(4, 4), "args": {"lr": 0.1}})
        >>> sp.check({"open": print})
        Traceback (most recent call last):
        sealpoint.UnsupportedError: ...
    """
    check_arguments(allow_pickle=allow_pickle)
    with torch.no_grad():
        Collected(state_dict, 0, 1, SaveOptions(allow_pickle=allow_pickle), FirstNames(True), {})
