# SPDX-License-Identifier: Apache-2.0
"""A model is filled by vLLM's loaders, through its load format "sealpoint":  vllm_load.py FOLDER

vLLM itself needs an accelerator to run models; its interface of loaders, and what models load their weights with, do not.
"""

import pathlib
import sys
import types

import framework_stubs
import numpy

framework_stubs.install("triton", "xgrammar", "depyf", "llguidance", "outlines_core", "numba", "flashinfer", "fastsafetensors",
                        "prometheus_fastapi_instrumentator", "pythonjsonlogger")
import sealpoint  # noqa: E402
import sealpoint.vllm  # noqa: E402
import torch  # noqa: E402
import vllm  # noqa: E402
from vllm.config.load import LoadConfig  # noqa: E402
from vllm.model_executor.model_loader import get_model_loader  # noqa: E402
from vllm.model_executor.models.utils import AutoWeightsLoader  # noqa: E402



class Model(torch.nn.Module):
    """The second of two tensor-parallel ranks: it has half of the rows of ``up``."""

    def __init__(self):
        super().__init__()
        self.embed, self.up = torch.nn.Embedding(6, 4), torch.nn.Linear(4, 4, bias=False)
        self.up.weight.weight_loader = lambda parameter, loaded: parameter.data.copy_(loaded.narrow(0, 4, 4))

    def load_weights(self, weights):
        return AutoWeightsLoader(self).load_weights(weights)


def main(folder):
    content = {"model.embed.weight": numpy.arange(24, dtype="f4").reshape(6, 4),
               "model.up.weight": numpy.arange(32, dtype="f4").reshape(8, 4)}
    sealpoint.save({**content, "optimizer.exp_avg": numpy.zeros(3)}, folder / "checkpoint")
    sealpoint.vllm.register()
    options = {"checkpoint": str(folder / "checkpoint"), "rename": {"model.*": "*"}}
    loader = get_model_loader(LoadConfig(load_format="sealpoint", model_loader_extra_config=options))
    model = Model()
    loader.load_weights(model, types.SimpleNamespace(model=str(folder)))
    assert numpy.array_equal(model.embed.weight.detach().numpy(), content["model.embed.weight"])
    assert numpy.array_equal(model.up.weight.detach().numpy(), content["model.up.weight"][4:])
    try:
        get_model_loader(LoadConfig(load_format="sealpoint", model_loader_extra_config={"path": "x"}))
    except sealpoint.InvalidArgumentError as error:
        assert "'path'" in str(error), error
    else:
        raise AssertionError("an option that is none")
    print(f"vLLM {vllm.__version__}: loaded through the format sealpoint")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
