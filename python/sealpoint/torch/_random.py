# SPDX-License-Identifier: Apache-2.0
"""States of the random generators of a process, as plain values."""

from __future__ import annotations

import random
from typing import Any

import numpy
import torch

States = list[list[Any]]


def random_states() -> States:
    """Returns (name, state) pairs for the generators of Python, numpy, torch, and the accelerator in use."""
    kind, words, *rest = numpy.random.get_state(legacy=True)
    states: States = [
        ["python", random.getstate()],
        ["numpy", [kind, numpy.asarray(words).tobytes(), *rest]],
        ["torch", _bytes_of(torch.get_rng_state())],
    ]
    if torch.accelerator.is_available():
        device = torch.get_device_module()
        states.append([device.__name__, _bytes_of(device.get_rng_state())])
    return states


def set_random_states(states: States) -> None:
    """Restores states that ``random_states`` returned in any process. Skips accelerators that this process does not have."""
    for name, state in states:
        if name == "python":
            random.setstate(state)
        elif name == "numpy":
            kind, words, *rest = state
            numpy.random.set_state((kind, numpy.frombuffer(words, dtype=numpy.uint32), *rest))
        elif name == "torch":
            torch.set_rng_state(_tensor_of(state))
        elif torch.accelerator.is_available() and torch.get_device_module().__name__ == name:
            torch.get_device_module().set_rng_state(_tensor_of(state))


def _bytes_of(state: torch.Tensor) -> bytes:
    return state.cpu().numpy().tobytes()


def _tensor_of(state: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(state), dtype=torch.uint8)
