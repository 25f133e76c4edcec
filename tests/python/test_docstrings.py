# SPDX-License-Identifier: Apache-2.0
"""Each public function, and each class that users construct, shows an example in its docstring. All of them run here.

Modules that patch a framework, or need more than one process, run theirs next to their own tests.
"""

import os
import pathlib
import sys

import docstring_examples
import pytest

FRAMEWORKS = pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "."), "build/frameworks")
MODULES = (
    "sealpoint", "sealpoint.fsspec", "sealpoint.interop", "sealpoint.jax", "sealpoint.jax.orbax", "sealpoint.lightning",
    "sealpoint.storage", "sealpoint.storage.fsspec", "sealpoint.storage.obstore", "sealpoint.torch", "sealpoint.torch.dcp",
    "sealpoint.vllm", "sealpoint.weights.sglang", "sealpoint.xarray",
)  # fmt: skip
# tests/frameworks/vllm_load.py has an engine of vLLM.
ELSEWHERE = {"sealpoint.vllm": ("register",)}


@pytest.fixture(params=MODULES)
def module(request, monkeypatch):
    for name in ("jax", "xarray", "lightning-*", "lightning-utilities-*", "torchmetrics-*", "tqdm-*"):
        for path in FRAMEWORKS.glob(name):
            monkeypatch.setattr(sys, "path", [*sys.path, str(path)])
    return pytest.importorskip(request.param)


def test_examples(module, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    docstring_examples.run(module, tmp_path, left_out=ELSEWHERE.get(module.__name__, ()))
