#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the project's own tests of sealpoint.torch (not PyTorch's) with another torch than the pinned one; by night, or on demand.
#   scripts/newest_torch.sh            the newest one that pip finds
#   scripts/newest_torch.sh 2.14.1     this one
# The environment, some gigabytes if it is a build for CUDA, stays in build/venv-torch.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/build/venv-torch
python=${PYTHON:-python3}

scripts/python_env.sh --no-torch
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --upgrade -r python/requirements.txt "torch${1:+==$1}"
cmake --preset python >build/python.configure.log
cmake --build build/python -j "$(nproc)" --target sealpoint_python ckpt

"$venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
export PYTHONPATH=$PWD/build/python/python PYTHONDONTWRITEBYTECODE=1
export SEALPOINT_SOURCE_DIR=$PWD SEALPOINT_BINARY_DIR=$PWD/build/python
for file in tests/python/test_torch*.py; do
  "$venv/bin/python" -m pytest -q -ra -p no:cacheprovider "$file"
done
