# SPDX-License-Identifier: Apache-2.0
"""Runs a program of Megatron-core on a machine without a GPU:  torchrun ... on_cpu.py PROGRAM ARGUMENTS"""

import contextlib
import runpy
import sys

import mcore_shim

mcore_shim.install()

from megatron.core import tensor_parallel  # noqa: E402

mcore_shim.use_own_adam()


def seed(number):  # without dropout nothing draws from these generators
    tensor_parallel.random.initialize_rng_tracker(force_reset=True)
    tensor_parallel.get_cuda_rng_tracker().fork = lambda *_, **__: contextlib.nullcontext()


tensor_parallel.model_parallel_cuda_manual_seed = seed
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
