#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints what saving and loading a training of 10^12 parameters costs, without its payload (docs/evidence/scale.md).
#   scripts/scale.sh                     all three trainings on 16,384 ranks: an hour or more on two cores, 8 GB of memory
#   scripts/scale.sh megatron            one of megatron, hsdp, experts, or with ten times the parameters megatron-10t and so on
#   scripts/scale.sh hsdp 8              with an eighth of the data ranks; also compares the index with that of all summaries
#   scripts/scale.sh hsdp 1 64           plans every 64th rank alone: figures per rank in a minute
# Real are planning, judging, merging, commit, opening and read plans; the ranks run one after the other in one process.
# Builds in build/dev, or in $BUILD.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/dev}
[ -e "$build/CMakeCache.txt" ] || cmake --preset dev
cmake --build "$build" --target scale_simulate
if [ $# -gt 0 ]; then
  "$build/tests/scale/scale_simulate" "$@"
else
  for training in megatron hsdp experts; do "$build/tests/scale/scale_simulate" "$training"; done
fi
