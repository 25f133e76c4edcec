# SPDX-License-Identifier: Apache-2.0
"""Runs the examples in the docstrings of a module's public functions, and of the classes that users construct."""

import doctest
import inspect
import os
import pathlib

# Interfaces, and classes that calls with examples return.
RETURNED = {
    "Blob", "Chunks", "CleanUp", "CommitInfo", "FileInfo", "Foreign", "Format", "Group", "HostCopy", "LeftOut", "LoadReport",
    "Newest",
    "ObjectPage", "ObjectStore", "ObjectUpload", "Objects", "Plan", "PlanSummary", "PruneDecision", "PruneReport", "RepackReport",
    "RepairReport", "RepairedBlob", "Report", "SaveFuture", "SentinelFinding", "SeriesEntry", "Shard", "SliceReport", "State",
    "Status", "StoredObject", "Tensor", "ThinReport", "Unfinished", "UnfinishedUpload", "Verification", "VerifyReport",
}  # fmt: skip
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def shown_by(module):
    for name in module.__all__:
        value = getattr(module, name)
        is_error = inspect.isclass(value) and issubclass(value, Exception)
        if (inspect.isroutine(value) or inspect.isclass(value)) and not is_error and name not in RETURNED:
            yield name, value


def run(module, folder, only=None, left_out=(), given=None):
    """Fails if an example fails or is missing. ``given``: names that examples use and do not define."""
    failed, seen, before = [], 0, os.getcwd()
    for name, value in shown_by(module):
        if name in left_out or (only is not None and name not in only):
            continue
        (test,) = doctest.DocTestFinder(recurse=False).find(value, name, globs=dict(given or {}))
        if not test.examples:
            failed.append(f"{module.__name__}.{name} has no example\n")
        place = pathlib.Path(folder, f"{module.__name__}.{name}")
        place.mkdir(parents=True)
        os.chdir(place)
        try:
            doctest.DocTestRunner(optionflags=FLAGS).run(test, out=failed.append)
        finally:
            os.chdir(before)
        seen += 1
    assert not failed, "".join(failed)
    assert seen > 0
