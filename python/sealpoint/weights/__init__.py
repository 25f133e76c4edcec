# SPDX-License-Identifier: Apache-2.0
"""Versions of weights, from a trainer to the hosts of an engine, through a series of checkpoints (docs/guides/weights.md).

    from sealpoint.weights import publish  # on all ranks of the trainer; needs torch
    publish(model.state_dict(), "s3://bucket/run/weights", version)

    from sealpoint.weights import Follower  # in each process of the engine; needs no torch
    follower = Follower("s3://bucket/run/weights")
    update = follower.wait()
    tensors = follower.tensors()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sealpoint.weights._follower import Follower, Update

if TYPE_CHECKING:
    from sealpoint.weights._publisher import Published, Publisher, publish

__all__ = ["Follower", "Published", "Publisher", "Update", "publish"]


def __getattr__(name: str) -> Any:
    """Imports the side of the trainer, and with it torch, when it is used."""
    if name in ("Published", "Publisher", "publish"):
        return getattr(import_module("sealpoint.weights._publisher"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
