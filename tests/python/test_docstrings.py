# SPDX-License-Identifier: Apache-2.0
"""Each public function, and each class that users construct, shows an example in its docstring. All of them run here."""

import doctest
import importlib
import inspect

import pytest
import sealpoint

MODULES = ("sealpoint", "sealpoint.interop", "sealpoint.storage", "sealpoint.storage.obstore")
# Returned by calls that have the examples, or interfaces.
RETURNED = {
    "Blob", "Chunks", "CleanUp", "CommitInfo", "FileInfo", "Format", "HostCopy", "LeftOut", "LoadReport", "Newest", "ObjectPage",
    "ObjectStore", "ObjectUpload", "Objects", "Plan", "PlanSummary", "PruneDecision", "PruneReport", "RepackReport", "RepairReport",
    "RepairedBlob", "Report", "SeriesEntry", "Shard", "State", "StoredObject", "Tensor", "ThinReport", "Unfinished",
    "UnfinishedUpload", "VerifyReport",
}  # fmt: skip
EXAMPLES = [
    (module, name) for module in MODULES for name in importlib.import_module(module).__all__ if name not in RETURNED
]


@pytest.mark.parametrize(("module", "name"), EXAMPLES)
def test_example(module, name, tmp_path, monkeypatch):
    shown = getattr(importlib.import_module(module), name)
    if not inspect.isroutine(shown) and not inspect.isclass(shown) or inspect.isclass(shown) and issubclass(shown, Exception):
        return
    (test,) = doctest.DocTestFinder(recurse=False).find(shown, name, globs={})
    assert test.examples, f"{module}.{name} has no example"
    monkeypatch.chdir(tmp_path)
    failed = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=failed.append)
    assert not failed, "".join(failed)


def test_no_name_is_left_out_in_vain():
    public = {name for module in MODULES for name in importlib.import_module(module).__all__}
    assert public >= RETURNED and sealpoint.__doc__
