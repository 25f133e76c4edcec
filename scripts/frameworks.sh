#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What tests of frameworks leave out, with each version in python/requirements-frameworks.txt: the examples of Megatron-core and
# torchtitan, killed and resumed on another mesh; torchtitan's own trainers, killed and resumed; and vLLM's loaders, which fill its
# Llama on four tensor-parallel ranks. Takes some ten minutes, and puts packages of 400 MB, which torchtitan needs, into
# build/trainer, and vLLM of 1.2 GB into build/vllm.
#   scripts/frameworks.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/python_env.sh
python=build/venv/bin/python
cmake --preset python
cmake --build build/python --target sealpoint_python

if [ ! -d build/trainer ]; then
  rm -rf build/trainer.part
  # torch is there; what requires it is taken without what it requires.
  "$python" -m pip install --quiet --target build/trainer.part tyro tokenizers 'datasets>=3.6,<4.8' tensorboard einops pillow \
    safetensors
  "$python" -m pip install --quiet --target build/trainer.part --no-deps torchdata torch_checkpointing spmd_types==0.2.3 requests \
    urllib3
  mv build/trainer.part build/trainer
fi
if [ ! -d build/vllm ]; then
  rm -rf build/vllm.part
  "$python" -m pip install --quiet --no-compile --target build/vllm.part -r tests/frameworks/requirements-vllm.txt
  # Of torch there is one already, which these want anew.
  "$python" -m pip install --quiet --no-compile --no-deps --target build/vllm.part vllm==0.33.0 compressed-tensors==0.17.0
  mv build/vllm.part build/vllm
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONPATH=build/python/python:tests/python:build/trainer
PYTHONPATH=$(printf '%s' "$PYTHONPATH" | sed "s|[^:]*|$PWD/&|g")
export PYTHONPATH
mkdir "$work/vllm"
PYTHONPATH="${PYTHONPATH%:*}:$PWD/build/vllm" "$python" -W ignore tests/frameworks/vllm_load.py "$work/vllm" 2>"$work/log" ||
  { cat "$work/log"; exit 1; }
for version in 0.16.1 0.19.2; do
  gpt() {
    PYTHONPATH="$PYTHONPATH:$(echo "$PWD"/build/frameworks/psutil-*):$PWD/build/frameworks/megatron-core-$version" OMP_NUM_THREADS=1 \
      "$python" -W ignore -m torch.distributed.run --standalone --nproc-per-node 4 tests/frameworks/on_cpu.py \
      examples/python/megatron_gpt.py "$work/gpt-$version" "$@" 2>"$work/log" | tee "$work/steps" | tail -2
  }
  if gpt --tp 2 --steps 40 --die-at 25; then
    echo "megatron-core $version: it was to be killed in step 25" >&2
    exit 1
  fi
  gpt --tp 4 --steps 30
  head -1 "$work/steps" | grep -q '^step  21 ' || { cat "$work/log"; exit 1; }
  echo "megatron-core $version: went on at step 21 on another mesh"
done
mkdir "$work/titan"
PYTHONPATH="$PYTHONPATH:$PWD/tests/frameworks" "$python" -c \
  'import pathlib, sys, trainers; trainers.make_assets(pathlib.Path(sys.argv[1]))' "$work/titan"
titan() (
  root=$PWD
  cd "$work/titan"
  PYTHONPATH="$PYTHONPATH:$root/build/frameworks/torchtitan-0.3.0" OMP_NUM_THREADS=1 "$root/$python" -W ignore -m \
    torch.distributed.run --standalone --nproc-per-node 4 "$root/tests/frameworks/titan_cpu.py" \
    "$root/examples/python/torchtitan_run.py" run --every 3 "$@" >"$work/log" 2>&1
)
if titan --replicas 2 --steps 20 --die-at 8; then
  echo "torchtitan: its example was to be killed in step 8" >&2
  exit 1
fi
titan --tp 2 --steps 9 || { cat "$work/log"; exit 1; }
grep -q 'Training starts at step 7' "$work/log" || { cat "$work/log"; exit 1; }
echo "torchtitan 0.3.0: went on at step 7, with tensor parallelism instead of replicas"
"$python" tests/frameworks/trainers.py "$work" "$PWD/build/frameworks" torchtitan-0.3.0 torchtitan-0.2.2
