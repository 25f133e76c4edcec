# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of train_char_lm to PTX, as they are built, and looks for fused multiplications and additions.

Usage: fused_test.py NVCC SOURCE OPTION...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Functions of CUDA's own are in these, and fuse as they like.
WITH_FUNCTIONS = {"char_lm_Tanh", "char_lm_Softmax"}
KERNELS = 12


def main(nvcc, source, *options):
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder) / "kernels.ptx"
        subprocess.run([nvcc, "--ptx", *options, source, "-o", ptx], check=True)
        kernels = re.split(r"\.entry ", ptx.read_text())[1:]
    names = [re.match(r"\w+", text).group() for text in kernels]
    fused = [name for name, text in zip(names, kernels) if name not in WITH_FUNCTIONS and "fma." in text]
    print(f"{len(names)} kernels: {', '.join(names)}; fused: {', '.join(fused) or 'none'}")
    return 0 if len(names) == KERNELS and not fused else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
