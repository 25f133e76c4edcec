# SPDX-License-Identifier: Apache-2.0
"""Each public function, and each class that users construct, shows an example in its docstring. All of them run here."""

import doctest
import importlib
import inspect
import os
import pathlib
import sys

import pytest

FRAMEWORKS = pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "."), "build/frameworks")
MODULES = (
    "sealpoint", "sealpoint.interop", "sealpoint.jax", "sealpoint.lightning", "sealpoint.storage", "sealpoint.storage.obstore",
    "sealpoint.torch", "sealpoint.torch.dcp", "sealpoint.vllm",
)  # fmt: skip
# Interfaces, and classes that calls with examples return.
RETURNED = {
    "Blob", "Chunks", "CleanUp", "CommitInfo", "FileInfo", "Foreign", "Format", "HostCopy", "LeftOut", "LoadReport", "Newest",
    "ObjectPage", "ObjectStore", "ObjectUpload", "Objects", "Plan", "PlanSummary", "PruneDecision", "PruneReport", "RepackReport",
    "RepairReport", "RepairedBlob", "Report", "SaveFuture", "SeriesEntry", "Shard", "SliceReport", "State", "StoredObject",
    "Tensor", "ThinReport", "Unfinished", "UnfinishedUpload", "VerifyReport",
}  # fmt: skip
# It needs an engine of vLLM.
UNTESTED = {("sealpoint.vllm", "register")}


@pytest.fixture(params=MODULES)
def module(request, monkeypatch):
    for name in ("jax", "lightning-*", "lightning-utilities-*", "torchmetrics-*", "tqdm-*"):
        for path in FRAMEWORKS.glob(name):
            monkeypatch.setattr(sys, "path", [*sys.path, str(path)])
    return pytest.importorskip(request.param)


def shown_by(module):
    for name in module.__all__:
        value = getattr(module, name)
        is_error = inspect.isclass(value) and issubclass(value, Exception)
        is_example = (inspect.isroutine(value) or inspect.isclass(value)) and not is_error
        if is_example and name not in RETURNED and (module.__name__, name) not in UNTESTED:
            yield name, value


def test_examples(module, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    failed, seen = [], 0
    for name, value in shown_by(module):
        (test,) = doctest.DocTestFinder(recurse=False).find(value, name, globs={})
        if not test.examples:
            failed.append(f"{module.__name__}.{name} has no example\n")
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
        doctest.DocTestRunner(optionflags=flags).run(test, out=failed.append)
        seen += 1
    assert not failed, "".join(failed)
    assert seen > 0
