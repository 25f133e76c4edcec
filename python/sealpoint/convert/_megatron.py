# SPDX-License-Identifier: Apache-2.0
"""Directories of Megatron-core's torch_dist: those of DCP, with a file of the common state before 0.19."""

from __future__ import annotations

import json
import os
import re

from sealpoint._errors import CorruptError, IncompleteError, UnsupportedError
from sealpoint.convert._beside import take_beside
from sealpoint.convert._dcp import METADATA, describe, read_leaves
from sealpoint.convert._dcp_metadata import read_metadata
from sealpoint.convert._files import check_links
from sealpoint.convert._source import Opener, State
from sealpoint.convert._torch_zip import TorchZip, value_or_error
from sealpoint.convert._values import LEFT_OUT

MARKER, COMMON, LATEST = "metadata.json", "common.pt", "latest_checkpointed_iteration.txt"
# The item of the common state since 0.19.
COMMON_KEY = "common_state/shard_0_1"
_BYTES_MAX = 1 << 20
_MEANINGS = {
    MARKER: "marker of a finished save, with its format",
    COMMON: "common state: arguments, iteration, what the optimizer does not shard",
    "integrity.json": "digests of the files, not checked",
}


def latest(path: str, opener: Opener) -> str | None:
    """The directory of the newest iteration, of a folder of iterations; None if it is no such folder."""
    file_path = os.path.join(path, LATEST)
    if not os.path.isfile(file_path):
        return None
    text = (
        opener.files.open(file_path).read(0, min(opener.files.open(file_path).size, 32)).decode("ascii", "replace").strip()
    )
    if text == "release":
        return os.path.join(path, text)
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise CorruptError(f"it names the iteration {text!a}, expected a number or release", path=file_path)
    return os.path.join(path, f"iter_{int(text):07d}")


def is_megatron(path: str, opener: Opener) -> bool:
    """Whether its marker is there and names a format of Megatron's. Errors: UnsupportedError (zarr and others)."""
    marker = os.path.join(path, MARKER)
    if not os.path.isfile(marker):
        return False
    file = opener.files.open(marker)
    try:
        content = json.loads(file.read(0, min(file.size, _BYTES_MAX)))
        backend = content["sharded_backend"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    if backend != "torch_dist":
        raise UnsupportedError(f"a checkpoint of Megatron in the format {backend!a:.40}, expected torch_dist", path=marker)
    return True


def open_megatron(path: str, opener: Opener) -> State:
    names = sorted(os.listdir(path))
    if METADATA not in names:
        raise IncompleteError(f"{METADATA} is missing", path=path)
    metadata = read_metadata(opener.files.open(os.path.join(path, METADATA)), opener.goes_on)
    state = State("megatron", path, {}, {}, [], digest="CRC-32 of the zips, one per tensor and rank; none for .metadata")
    state.tree = read_leaves(metadata, state, opener, are_lists_of_one=True)
    used = {place.file for stored in metadata.tensors.values() for place in stored.places.values()}
    used |= {place.file for place in metadata.objects.values()}
    if COMMON in names and COMMON_KEY not in state.tree:
        check_links(path, COMMON)
        file = opener.files.open(os.path.join(path, COMMON))
        node = value_or_error(
            lambda: TorchZip(file, 0, file.size, keep_unknown=True), state.tensors, (COMMON_KEY,), opener, state.notes
        )
        if node is not LEFT_OUT:
            state.tree[COMMON_KEY] = node
    state.files = [info._replace(meaning=_MEANINGS.get(info.name, info.meaning)) for info in describe(path, names, used)]
    state.step = _iteration(state)
    take_beside(state, {name.split("/")[0] for name in used} | {METADATA, *_MEANINGS}, opener, may_link=False)
    return state


def _iteration(state: State) -> int | None:
    common = state.tree.get(COMMON_KEY)
    found = common.get("iteration") if isinstance(common, dict) else None
    return found if type(found) is int and found >= 0 else None
