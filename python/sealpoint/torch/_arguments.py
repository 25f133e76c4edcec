# SPDX-License-Identifier: Apache-2.0
"""Rules for torch-specific arguments."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import torch.distributed as dist

from sealpoint._ranks import arguments
from sealpoint._rules import STRINGS, Rule, always, is_text, of_type, or_none, words
from sealpoint.torch._contract import Contract
from sealpoint.torch._schedule import period_of

_RULES: dict[str, Rule] = {
    "contract": or_none(of_type(Contract, "a Contract")),
    "every": Rule(always, lambda value: arguments.COUNT.has_type(value) and arguments.COUNT.has_value(value)
                  or period_of(value) is not None,
                  'an integer of at least 1, a time such as "30s", "10min" or "2h", or a timedelta'),
    "exclude": STRINGS,
    "on_finding": or_none(Rule(callable, always, "a function")),
    "paired": or_none(Rule(lambda value: callable(value) or isinstance(value, Mapping),
                           lambda value: callable(value) or all(map(is_text, (*value, *value.values()))),
                           "a mapping of names to names, or a function")),
    "unverified": words("error", "allow"),
    "process_group": or_none(of_type(dist.ProcessGroup, ""), "a group of torch.distributed"),
}
check = functools.partial(arguments.check, _RULES)
checked_call = functools.partial(arguments.checked_call, rules=_RULES)
