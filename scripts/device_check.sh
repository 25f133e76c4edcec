#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What only a machine with a GPU can show, in one command of at most ten minutes there (docs/evidence/testing.md).
#   scripts/device_check.sh build [FOLDER]       here: makes FOLDER (default build/device-check) with all that is needed there,
#                                                and FOLDER.tar.gz; needs the CUDA Toolkit
#   FOLDER/device_check.sh run [FOLDER]          there: needs bash, coreutils, awk, grep and the driver; prints a table for
#                                                docs/evidence/benchmarks.md, which with all output is in FOLDER/results
#   scripts/device_check.sh gather BUILD FOLDER  as build, of what a build folder has
# Exit status of run: 0 all passed; 1 something failed, or took too long; 77 there is no device.
# DEVICE_CHECK_SECONDS (570) bounds the whole run, DEVICE_CHECK_STEP_SECONDS each step; SEALPOINT_CUDA_RATE_MIB (1024) is the
# size that rates are measured with, SEALPOINT_CUDA_LOAD_FOLDER the file system; COMPUTE_SANITIZER names that program, which is
# also looked for in FOLDER/compute-sanitizer, in PATH and beside the CUDA Toolkit. DEVICE_CHECK_CARRIED_LIBC=1: with the C
# library that was carried, which is used anyway if that of the machine is older.
set -euo pipefail

programs=(tests/cuda/cuda_device tests/cuda/cuda_load tests/cuda/cuda_save tests/cuda/cuda_prototypes
  tests/cuda/cuda_stall_rate tests/cuda/cuda_rate tests/cuda/cuda_load_rate)

usage() {
  sed -n '3,15s/^# *//p' "$0"
  exit "$1"
}

# ---- on the machine that builds

build() {  # folder
  cd "$(dirname "$0")/.."
  local folder=${1:-build/device-check} tree=build/device one targets=()
  for one in "${programs[@]}"; do targets+=("${one##*/}"); done
  cmake -S . -B "$tree" -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_UNITY_BUILD=ON -D SEALPOINT_WITH_CUDA=ON \
    -D SEALPOINT_NIGHTLY_TESTS=ON -D SEALPOINT_WITH_MPI=OFF -D SEALPOINT_WITH_S3=OFF -D SEALPOINT_USE_STATIC_LIBS=ON \
    -D SEALPOINT_BUILD_BENCHMARKS=OFF \
    -D CMAKE_EXE_LINKER_FLAGS='-static-libstdc++ -static-libgcc' >"$tree.configure.log" 2>&1 || {
    cat "$tree.configure.log" >&2
    exit 1
  }
  cmake --build "$tree" --target "${targets[@]}"
  gather "$tree" "$folder"
  tar -C "$(dirname "$folder")" -czf "$folder.tar.gz" "$(basename "$folder")"
  echo "$folder: $(du -sh "$folder" | cut -f1); $folder.tar.gz: $(du -h "$folder.tar.gz" | cut -f1)"
  echo "there: tar -xzf $(basename "$folder").tar.gz && $(basename "$folder")/device_check.sh run"
}

# The shared libraries that a program needs, by name.
libraries_of() { ldd "$1" | awk '{ print $1 }' | grep -v -e '^linux-vdso' -e '^/'; }

# The C library of this machine, for one whose own is older: all of it, since its parts fit no others.
carry_libc() {  # program, folder
  local loader libc one
  loader=$(ldd "$1" | grep -o '/[^ ]*/ld-linux[^ ]*')
  libc=$(ldd "$1" | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
  mkdir -p "$2"
  cp -L "$loader" "$2/loader"
  for one in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do cp -L "$(dirname "$libc")/$one" "$2"; done
}

gather() {  # build folder, folder
  local tree=$1 folder=$2 root one name
  root=$(cd "$(dirname "$0")/.." && pwd)
  rm -rf "$folder"
  mkdir -p "$folder/programs"
  for one in "${programs[@]}"; do
    if [ -x "$tree/$one" ]; then
      name=$folder/programs/${one##*/}
      cp "$tree/$one" "$name"
      strip "$name"
    else
      echo "$tree has no $one: it is left out" >&2
    fi
  done
  carry_libc "$folder/programs/cuda_device" "$folder/lib"
  cp "$0" "$folder/device_check.sh"
  {
    echo "commit: $(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)"
    echo "libraries: $(for one in "$folder"/programs/*; do libraries_of "$one"; done | sort -u | xargs)"
    echo "glibc: $(for one in "$folder"/programs/*; do objdump -T "$one"; done | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)"
  } >"$folder/manifest"
  cat "$folder/manifest"
}

# ---- on the machine with the device

row() { echo "| $1 | $2 | ${3:-} |" >>"$results/checks.md"; }

figure() {  # what, value, target, log: the value may be empty
  echo "| $1 | ${2:-not measured} | $3 |" >>"$results/figures.md"
}

# One line about a log of GoogleTest: counts, and why tests were skipped or which failed.
tests_in() {
  awk '
    /^\[  PASSED  \] [0-9]+ test/ { passed = $4 }
    /^\[  SKIPPED \] [0-9]+ test/ { skipped = $4 }
    /^\[  FAILED  \] [A-Za-z]+\.[A-Za-z0-9]+( |$)/ { if (!seen[$4]++) failed = failed " " $4 }
    /Skipped$/ { take = 1; next }
    take { why = $0; take = 0 }
    END {
      text = passed == "" ? "" : passed " tests passed"
      if (skipped) text = text ", " skipped " skipped (" why ")"
      if (failed != "") text = text (text == "" ? "" : "; ") "failed:" failed
      print text
    }' "$1"
}

# A step's log is FOLDER/results/NAME.log. A step that fails or takes too long keeps no other from running.
step() {  # name, seconds at most, program, arguments...
  local name=$1 limit=$2 program=$3 left=$((total - SECONDS)) began=$SECONDS status=0 text
  shift 3
  if [ ! -x "$program" ]; then
    row "$name" skipped "${program##*/} was not carried"
    return
  fi
  if ((left <= 0)); then
    row "$name" "not run" "$total s are over"
    failed=1
    return
  fi
  limit=${DEVICE_CHECK_STEP_SECONDS:-$limit}
  ((limit < left)) || limit=$left
  timeout --kill-after=5 "$limit" "${start[@]}" "$program" "$@" >"$results/$name.log" 2>&1 || status=$?
  text=$(tests_in "$results/$name.log")
  case $status in
    0) row "$name" passed "$text${text:+; }$((SECONDS - began)) s" ;;
    124 | 137) row "$name" "TIMED OUT" "after $limit s${text:+; $text}" && failed=1 ;;
    *) row "$name" FAILED "exit status $status${text:+; $text}" && failed=1 ;;
  esac
}

# The number behind a text in a log.
number_in() { { sed -n "s/.*$2\([0-9.][0-9.]*\).*/\1/p" "$results/$1.log" 2>/dev/null || true; } | tail -n 1; }

# What programs are started by: nothing, or the carried C library if that of this machine is older.
choose_libc() {
  start=()
  if [ "${DEVICE_CHECK_CARRIED_LIBC:-}" = 1 ] ||
    grep -q 'GLIBC_.* not found' <("$folder/programs/cuda_device" --gtest_list_tests 2>&1 || true); then
    start=("$folder/lib/loader" --library-path "$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
  fi
}

check_device() {
  local output why
  output=$("${start[@]}" "$folder/programs/cuda_device" '--gtest_filter=Cuda*' 2>&1 || true)
  why=$(grep -o 'CUDA device 0 is not available.*' <<<"$output" | head -n 1 || true)
  if [ -n "$why" ]; then
    echo "skipped: $why"
    exit 77
  fi
  if ! grep -q '^\[==========\] Running' <<<"$output"; then
    echo "programs do not start here (manifest: $(grep glibc "$folder/manifest" || true)): $output" >&2
    exit 1
  fi
}

rates() {
  step stall 90 "$folder/programs/cuda_stall_rate"
  step rate 60 "$folder/programs/cuda_rate"
  step load-rate 90 "$folder/programs/cuda_load_rate"
  local digests
  digests=$(number_in rate 'digests of 4 MiB: ')
  figure "stall of a background save ÷ one pinned copy" "$(number_in stall 'save in the background: ')" "≤ 1.05"
  figure "copies in pieces ÷ one pinned copy, times" "$(number_in rate 'copies in pieces: ')" "≤ 1.05"
  figure "digest kernel ÷ link, rates" "${digests:+$(awk -v x="$digests" 'BEGIN { printf "%.2f", 1 / x }')}" "≥ 2"
  figure "load ÷ min(link, storage), rates" "$(number_in load-rate 'load to the device: ')" "≥ 0.9"
  figure "the same, digests compared on the device" "$(number_in load-rate 'load to the device with digests there: ')" "–"
  figure "one pinned copy of ${SEALPOINT_CUDA_RATE_MIB:-1024} MiB, ms" "$(number_in stall 'pinned copy ')" "–"
}

find_sanitizer() {
  local one
  for one in "${COMPUTE_SANITIZER:-}" "$folder/compute-sanitizer/compute-sanitizer" "$(command -v compute-sanitizer || true)" \
    /usr/local/cuda*/bin/compute-sanitizer; do
    if [ -n "$one" ] && [ -x "$one" ]; then
      echo "$one"
      return
    fi
  done
}

# Of these kernels and copies; large and long cases are left out.
sanitize() {
  local sanitizer tool test options carried=("${start[@]}")
  sanitizer=$(find_sanitizer)
  start=()  # the sanitizer is of this machine
  for tool in memcheck racecheck synccheck; do
    if [ -z "$sanitizer" ]; then
      row "$tool" skipped "compute-sanitizer is neither in PATH nor in /usr/local/cuda*/bin nor in $folder/compute-sanitizer"
      continue
    fi
    # Calls that fail are not of interest: one test makes such a call, and libcufile makes one where it cannot be used.
    options=()
    [ "$tool" != memcheck ] || options=(--report-api-errors no)
    for test in cuda_device cuda_load cuda_save; do
      [ -x "$folder/programs/$test" ] || continue
      step "$tool-$test" 60 "$sanitizer" --tool "$tool" "${options[@]}" --error-exitcode 86 "${carried[@]}" "$folder/programs/$test" \
        '--gtest_filter=-*ManyBatches*'
    done
  done
}

facts() {
  local libc
  libc="glibc $(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)"
  ((${#start[@]} == 0)) || libc="glibc of the build"
  echo "Device check of $(sed -n 's/^commit: //p' "$folder/manifest"), $(date -u +%F): $(nproc --all) processors, $(uname -r)," \
    "$libc, file system $(stat -f -c %T "$folder");"
  nvidia-smi --query-gpu=name,driver_version,memory.total,pcie.link.gen.max,pcie.link.width.max --format=csv,noheader 2>/dev/null ||
    echo "no nvidia-smi"
}

print_table() {
  {
    cat "$results/facts"
    printf '\n| figure | measured | target |\n|---|---|---|\n'
    cat "$results/figures.md"
    printf '\n| check | outcome | |\n|---|---|---|\n'
    cat "$results/checks.md"
  } >"$results/table.md"
  cat "$results/table.md"
  rm -rf "$work"
}

run() {
  folder=$(cd "${1:-$(dirname "$0")}" && pwd)
  [ -d "$folder/programs" ] || { echo "$folder has no programs, expected what device_check.sh build leaves" >&2; exit 64; }
  total=${DEVICE_CHECK_SECONDS:-570} failed=0 results=$folder/results
  SECONDS=0
  choose_libc
  check_device
  rm -rf "$results"
  mkdir -p "$results"
  facts >"$results/facts"
  : >"$results/checks.md"
  : >"$results/figures.md"
  work=$(mktemp -d "${SEALPOINT_CUDA_LOAD_FOLDER:-$results}/work-XXXXXX")
  export TEST_TMPDIR=$work TMPDIR=$work SEALPOINT_CUDA_LOAD_FOLDER=$work
  # Whatever ends this script, what was measured so far is printed.
  trap print_table EXIT
  step device 90 "$folder/programs/cuda_device"
  step load 60 "$folder/programs/cuda_load"
  step save 60 "$folder/programs/cuda_save"
  step prototypes 10 "$folder/programs/cuda_prototypes"
  rates
  sanitize
  exit "$failed"
}

case ${1:-} in
  build) build "${2:-}" ;;
  gather) [ $# -eq 3 ] || usage 64; gather "$2" "$3" ;;
  run) run "${2:-}" ;;
  -h | --help) usage 0 ;;
  *) usage 64 >&2 ;;
esac
