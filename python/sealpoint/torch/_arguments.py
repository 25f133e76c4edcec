# SPDX-License-Identifier: Apache-2.0
"""Rules for torch-specific arguments."""

from __future__ import annotations

import functools

import torch.distributed as dist

from sealpoint._ranks import arguments
from sealpoint.torch._options import Contract
from sealpoint.torch._schedule import period_of

_RULES: dict[str, arguments.Rule] = {
    "contract": (lambda value: value is None or isinstance(value, Contract), "a Contract, or None"),
    "every": (lambda value: arguments.is_count(value) or period_of(value) is not None,
              'an integer of at least 1, a time such as "30s", "10min" or "2h", or a timedelta'),
    "process_group": (lambda value: value is None or isinstance(value, dist.ProcessGroup), "a group of torch.distributed"),
}
check = functools.partial(arguments.check, _RULES)
checked_call = functools.partial(arguments.checked_call, rules=_RULES)
