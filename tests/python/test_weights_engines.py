# SPDX-License-Identifier: Apache-2.0
"""Versions of weights in the loaders of engines. The cases with several ranks are in weights_engines_cases.py.

The engines are not installed: engine_interfaces.py says which interfaces stand in for them, and where they were read.
"""

import concurrent.futures
import importlib.util
import os
import subprocess
import sys

import pytest
import ranks
import sealpoint

ranks.need_torch()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return ranks.run("weights_engines_cases", 4, tmp_path_factory.mktemp("job"), fork=True)


@pytest.mark.parametrize("case", [*ranks.names_of("weights_engines_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"


def test_a_hook_before_sglang_pulls(tmp_path, monkeypatch):
    """All ranks of a host call it at once; the folder is what SGLang takes for a full version."""
    import torch
    from safetensors.torch import load_file
    from sealpoint.weights import publish, sglang

    source = tmp_path / "pulled"
    monkeypatch.delenv(sglang.PLACE_VARIABLE, raising=False)
    with pytest.raises(sealpoint.InvalidArgumentError, match="SEALPOINT_WEIGHTS is not set"):
        sglang.before_pull(str(source), 7)
    state = {"w": torch.arange(12.0).reshape(3, 4), "b": torch.ones(3, dtype=torch.bfloat16)}
    publish(state, tmp_path / "p", 7)
    monkeypatch.setenv(sglang.PLACE_VARIABLE, str(tmp_path / "p"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: sglang.before_pull(str(source), 7), range(4)))
    assert os.listdir(source / "weight_v000007") == ["model.safetensors"]
    found = load_file(source / "weight_v000007/model.safetensors")
    assert found.keys() == state.keys() and all(torch.equal(found[name], state[name]) for name in state)
    with pytest.raises(sealpoint.NotFoundError, match="version 8"):
        sglang.before_pull(str(source), 8)
    assert not (source / "weight_v000008").exists()


def test_arguments():
    from sealpoint.weights import sglang
    from sealpoint.weights._engine import Receiver

    for options, text in (({"verify": "no"}, "verify is 'no'"), ({"timeout": 0}, "timeout is 0")):
        with pytest.raises(sealpoint.InvalidArgumentError, match=text):
            Receiver("p", **options)
    with pytest.raises(sealpoint.InvalidArgumentError, match="expected those of message"):
        sglang.load_weights(None, [("w", None)])


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vllm is installed")
def test_without_vllm():
    """Its plugin does nothing then, and imports no torch; so does the package of followers."""
    code = ("import sys, sealpoint.weights, sealpoint.weights.vllm as v; v.plugin(); assert 'torch' not in sys.modules\n"
            "try: v.register()\nexcept ImportError as e: print(e)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sealpoint.weights.vllm needs vllm with weight transfer")
