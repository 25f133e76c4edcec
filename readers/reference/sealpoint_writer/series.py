# SPDX-License-Identifier: Apache-2.0
"""A new checkpoint of a series (spec/series.md, sections 1 to 3), while nobody else writes there.

The markers that are there are read by the reference reader.
"""

import os

from sealpoint_reference.directory import PathDirectory
from sealpoint_reference.marker import read_marker
from sealpoint_reference.rules import Violation

from .checkpoint import Attempt, make_directory

# A COMMIT that is there and is no marker, by whatever rule, is damaged, and may be the newest one.
_WITHOUT_CHECKPOINT = ("R-MRK-01", "R-MRK-09", "R-DIR-05")


def _markers(series):
    """Those of all directories that hold a checkpoint. One that may hold a newer one, and cannot be read, ends it."""
    with os.scandir(series) as entries:
        paths = [entry.path for entry in entries if entry.is_dir()]
    for path in paths:
        try:
            yield read_marker(PathDirectory(path))
        except Violation as violation:
            if violation.rule not in _WITHOUT_CHECKPOINT:
                raise ValueError(f"{path}: {violation}. It may be the newest one, so that nothing can be saved behind it: "
                                 "move it out of the series, or use a newer version") from violation


def newest(series):
    """The marker with the greatest sequence, on a tie with the greatest attempt (R-SER-02); None without a checkpoint."""
    return max(_markers(series), key=lambda marker: (marker.sequence, marker.attempt), default=None)


def begin(series, step, compat=0, base=None):
    """An attempt at the checkpoint of this step, in a new directory, behind the newest one (R-SER-12). `base` as of Attempt."""
    make_directory(series)
    parent = newest(series)
    identity = os.urandom(16)
    path = os.path.join(series, f"step-{step:012}-{identity.hex()[:8]}")
    if parent is None:
        return Attempt(path, step, compat=compat, identity=identity, base=base)
    if parent.sequence == 2**64 - 1:
        raise ValueError(f"{series}: the sequence of the newest checkpoint is 2^64 - 1, the last one that there is")
    return Attempt(path, step, parent.attempt, parent.sequence + 1, compat, identity, base)
