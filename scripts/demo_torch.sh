# SPDX-License-Identifier: Apache-2.0
# The PyTorch part of scripts/demo.sh, which sources this file. Needs torch in build/venv.
# shellcheck shell=bash disable=SC2154 # root, ckpt, logs and status are the demo's
torch_python=$root/build/venv/bin/python
torch_package=$root/build/python

has_torch() { [ -x "$torch_python" ] && "$torch_python" -c 'import torch, nanobind' 2>"$logs/torch"; }

configure_package() {
  (cd "$root" && cmake --preset python) >"$logs/build-python" 2>&1 || {
    tail -n 30 "$logs/build-python" >&2
    fail "the build of the Python package"
  }
}

train_torch() {  # log, ranks, layout, steps, arguments...
  local log=$1 ranks=$2 layout=$3 until=$4
  shift 4
  OMP_NUM_THREADS=1 PYTHONPATH=$torch_package/python show "$log" "$torch_python" -m torch.distributed.run --standalone \
    --nproc-per-node "$ranks" "$root/examples/python/resume.py" torch --layout "$layout" --steps "$until" "$@"
}

torch_state() {  # step, log
  sed -nE "s/^step +$1  state ([0-9a-f]{16})  .*/\1/p" "$logs/$2"
}

torch_act() {
  if ! has_torch; then
    printf '\nThe PyTorch part is skipped, because build/venv has no torch. scripts/python_env.sh installs it.\n'
    return
  fi
  heading "PyTorch: FSDP2 on 4 ranks with background saves; rank 3 is killed during the save of step 30"
  train_torch torch-crash 4 fsdp 40 --die-at 30
  expect_status 1 "the training of which a rank is killed"
  show torch-series "$ckpt" verify --series torch
  expect_status 0 "ckpt verify of the PyTorch series"
  expect_line torch-series '^torch/step-000000000020-[0-9a-f]{8}: valid \(full\)'
  expect_line torch-series ' \(full\): 2 valid, '

  heading "Resume on 2 ranks with tensor parallelism"
  train_torch torch-resume 2 tp 40
  expect_status 0 "the resumed training"
  answer "loaded parameters and optimizer state are identical to the saved ones, bit for bit" same_text \
    "$(torch_state 20 torch-crash)" "$(torch_state 20 torch-resume)"
}
