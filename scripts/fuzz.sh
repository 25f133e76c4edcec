#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets for long, one after the other, with what earlier runs found.
#   scripts/fuzz.sh MINUTES [TARGET...]     each for so long; targets: marker index blob open
# A finding ends the run; the input that shows it is in build/fuzz/findings. Copy it to
# fuzz/regressions/TARGET together with the repair.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  '' | -h | --help | *[!0-9]*)
    sed -n '3,6s/^# *//p' scripts/fuzz.sh
    exit 64
    ;;
esac
minutes=$1
shift
targets=("$@")
if ((${#targets[@]} == 0)); then targets=(marker index blob open); fi

cmake --preset fuzz >/dev/null
cmake --build build/fuzz --target fuzzers
mkdir -p build/fuzz/findings
for target in "${targets[@]}"; do
  program=build/fuzz/fuzz/fuzz_$target
  if [ ! -x "$program" ]; then
    echo "No target $target" >&2
    exit 64
  fi
  mkdir -p "build/fuzz/fuzz/$target.corpus"
  mapfile -t inputs < <(grep . "$program.inputs")
  "$program" -max_total_time=$((minutes * 60)) -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$target-" "build/fuzz/fuzz/$target.corpus" "${inputs[@]}"
done
