#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets, as many at a time as there are cores, with what earlier runs found. A finding ends the run; the
# input that shows it is in build/fuzz/findings. Copy it to fuzz/regressions/TARGET together with the repair.
#   scripts/fuzz.sh MINUTES [TARGET...]       each for so long, all if none is named
#   scripts/fuzz.sh --seconds S [TARGET...]   the same, for moments
#   scripts/fuzz.sh --minimise [TARGET...]    only drops inputs of earlier runs that reach nothing new
#   scripts/fuzz.sh --coverage                lines of lib/format, lib/codec and readers/ that seeds, regressions and
#                                             earlier runs reach, and what they leave (build/fuzz-coverage/uncovered.txt)
# Before these, --build FOLDER names another build than build/fuzz, which must have been built.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n '3,10s/^# *//p' scripts/fuzz.sh
  exit 64
}

# Where the inputs of earlier runs are kept, whichever build found them.
found=build/fuzz/found
folder=build/fuzz

build() {  # preset
  cmake --preset "$1" >/dev/null
  cmake --build "build/$1" --target fuzzers
}

# The targets of the build folder: those with a list of inputs.
all_targets() {
  local list
  for list in "$folder"/fuzz/fuzz_*.inputs; do
    list=${list##*/fuzz_}
    echo "${list%.inputs}"
  done
}

check_targets() {
  local target
  for target in "$@"; do
    if [ ! -e "$folder/fuzz/fuzz_$target.inputs" ]; then
      echo "No target $target; there are:" $(all_targets) >&2
      exit 64
    fi
  done
}

# A row of the table in docs/evidence/testing-counts.md: name, title, command, counts.
record() {
  echo "[ counted  ] $2: ${4//\"/}"
  if [ -n "${SEALPOINT_RESULTS:-}" ]; then
    printf '{"row": "%s", "title": "%s", "command": "%s", "exact": false, "counts": {%s}}\n' "$@" \
      >"$SEALPOINT_RESULTS/$1.json"
  fi
}

run() {  # target, seconds
  local inputs log executions
  mapfile -t inputs < <(grep . "$folder/fuzz/fuzz_$1.inputs")
  mkdir -p "$found/$1" "$folder/findings"
  log=$folder/findings/$1.log
  echo "== $1 for $2 s"
  "$folder/fuzz/fuzz_$1" -max_total_time="$2" -print_final_stats=1 -verbosity="${FUZZ_VERBOSITY:-0}" \
    -artifact_prefix="$folder/findings/$1-" "$found/$1" "${inputs[@]}" 2>&1 | tee "$log" | grep -vE '^(INFO|stat::|#|"|Done)' ||
    [ "${PIPESTATUS[0]}" -eq 0 ]
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  record "fuzz-$1" "Fuzzing of $1" "scripts/fuzz.sh --seconds $2 $1" "\"executions\": $executions"
}

minimise() {  # target
  mkdir -p "$found/$1"
  rm -rf "$found/$1.small"
  mkdir "$found/$1.small"
  "$folder/fuzz/fuzz_$1" -merge=1 -verbosity=0 "$found/$1.small" "$found/$1"
  echo "$1: $(find "$found/$1" -type f | wc -l) inputs, $(find "$found/$1.small" -type f | wc -l) kept"
  rm -rf "$found/$1"
  mv "$found/$1.small" "$found/$1"
}

coverage() {
  local target inputs programs=()
  for target in "$@"; do
    mapfile -t inputs < <(grep . "$folder/fuzz/fuzz_$target.inputs")
    mkdir -p "$found/$target"
    echo "== $target"
    LLVM_PROFILE_FILE=$folder/$target.profraw "$folder/fuzz/fuzz_$target" -runs=0 -verbosity=0 \
      "$found/$target" "${inputs[@]}" 2>&1 | grep -v '^INFO' || [ "${PIPESTATUS[0]}" -eq 0 ]
    programs+=(-object "$folder/fuzz/fuzz_$target")
  done
  llvm-profdata-19 merge -o "$folder/fuzz.profdata" "$folder"/*.profraw
  llvm-cov-19 export -format=lcov -instr-profile="$folder/fuzz.profdata" "${programs[@]}" >"$folder/fuzz.lcov"
  scripts/fuzz_coverage.py "$folder/fuzz.lcov" "$folder/uncovered.txt"
}

mode=run
seconds=
is_built=false
while (($#)); do
  case $1 in
    --build)
      folder=${2:?}
      is_built=true
      shift 2
      ;;
    --seconds)
      seconds=${2:?}
      shift 2
      ;;
    --minimise | --coverage)
      mode=${1#--}
      shift
      ;;
    [0-9]*)
      if [ -n "$seconds" ]; then usage; fi
      seconds=$(($1 * 60))
      shift
      ;;
    -*) usage ;;
    *) break ;;
  esac
done
if [ "$mode" = run ] && [ -z "$seconds" ]; then usage; fi

if [ "$mode" = coverage ]; then
  folder=build/fuzz-coverage
  build fuzz-coverage
elif ! "$is_built"; then
  build fuzz
fi
targets=("$@")
if ((${#targets[@]} == 0)); then mapfile -t targets < <(all_targets); fi
check_targets "${targets[@]}"

if [ "$mode" = coverage ]; then
  coverage "${targets[@]}"
else
  running=0
  for target in "${targets[@]}"; do
    if [ "$mode" = minimise ]; then
      minimise "$target"
      continue
    fi
    if ((running++ >= $(nproc))); then wait -n; fi
    run "$target" "$seconds" &
  done
  for ((; running > 0; --running)); do wait -n || [ $? -eq 127 ]; done
fi
