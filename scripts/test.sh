#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds Sealpoint in every supported way and runs its tests.
#   scripts/test.sh            all stages
#   scripts/test.sh --quick    packages and g++ only
#   scripts/test.sh STAGE...   the named ones of: packages gcc sanitizers threads minimal mutants lint
set -euo pipefail
cd "$(dirname "$0")/.."

all_stages=(packages gcc sanitizers threads minimal mutants lint)
jobs=$(nproc)
fuzz_seconds=${FUZZ_SECONDS:-5}

# One cache for all build folders: paths below the root do not count.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export CTEST_OUTPUT_ON_FAILURE=1
# Where runs write what they counted (docs/testing-counts.md).
export SEALPOINT_RESULTS=$PWD/build/results
mkdir -p "$SEALPOINT_RESULTS"

configure() {  # preset, further arguments
  cmake --preset "$@" >"build/$1.configure.log" 2>&1 || {
    cat "build/$1.configure.log"
    return 1
  }
}

build() {  # preset, targets...
  local preset=$1
  shift
  local targets=()
  if (($#)); then targets=(--target "$@"); fi
  cmake --build "build/$preset" -j "$jobs" "${targets[@]}"
}

stage_packages() { scripts/install_packages.sh; }

# g++, everything; every test; and what tests counted is what docs/testing-counts.md says.
stage_gcc() {
  configure check
  build check
  rm -f "$SEALPOINT_RESULTS"/*.json
  # One more than there are processors: where ranks are killed, mpirun waits most of the time.
  ctest --test-dir build/check -j $((jobs + 1))
  scripts/testing_table.py --check "$SEALPOINT_RESULTS"
}

# clang, AddressSanitizer and UndefinedBehaviorSanitizer: tests of one process, and each fuzz target for a moment.
stage_sanitizers() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  configure asan-ubsan
  build asan-ubsan sealpoint_tests_single_process fuzzers
  ctest --test-dir build/asan-ubsan -j "$jobs" -L '^(unit|property|conformance|fuzz)$'
  scripts/fuzz.sh --build build/asan-ubsan --seconds "$fuzz_seconds"
}

# clang, ThreadSanitizer: what has threads.
stage_threads() {
  export TSAN_OPTIONS=halt_on_error=1:die_after_fork=0  # tests fork and start threads in the child
  configure tsan
  build tsan sealpoint_tests_threaded
  ctest --test-dir build/tsan -j "$jobs" -L '^threaded$'
}

# g++ without MPI and without CUDA.
stage_minimal() {
  configure no-mpi
  build no-mpi
  ctest --test-dir build/no-mpi -j "$jobs" -L '^(unit|property|conformance)$'
}

# Each sync, publication and compare of digests taken out, one at a time: a test must fail.
stage_mutants() {
  scripts/mutants.py --quick
  scripts/testing_table.py --check "$SEALPOINT_RESULTS"
}

# clang-format; clang-tidy over lib and readers, each module in one piece.
stage_lint() {
  git ls-files '*.h' '*.cc' '*.cu' | xargs clang-format-19 --dry-run --Werror
  configure tidy
  if grep -q index_generated build/tidy/build.ninja; then build tidy sealpoint_schema_generated; fi
  grep -oE '"file": "[^"]*/(lib|readers)/[^"]*"' build/tidy/compile_commands.json | cut -d '"' -f 4 |
    xargs -n 1 -P "$jobs" clang-tidy-19 --quiet -p build/tidy 2> >(grep -v 'warnings generated' >&2)
}

# What a stage prints is kept in build/STAGE.log; the end of a failed stage's is printed once more at the very end.
run_stages() {
  local stage started failed=() report=()
  mkdir -p build
  for stage in "$@"; do
    printf '\n======== %s ========\n' "$stage"
    started=$SECONDS
    # A new shell, because -e has no effect in the condition of an if.
    if "$BASH" "$0" --run "$stage" 2>&1 | tee "build/$stage.log"; then
      report+=("$(printf '%-12s passed %5d s' "$stage" $((SECONDS - started)))")
    else
      failed+=("$stage")
      report+=("$(printf '%-12s FAILED %5d s' "$stage" $((SECONDS - started)))")
    fi
  done
  for stage in "${failed[@]}"; do
    printf '\n======== %s failed; its last lines ========\n' "$stage"
    tail -n 60 "build/$stage.log"
  done
  printf '\n======== summary ========\n'
  printf '%s\n' "${report[@]}"
  [ ${#failed[@]} -eq 0 ]
}

case ${1:-} in
  --run) "stage_$2" ;;
  --quick) run_stages packages gcc ;;
  -h | --help) sed -n '3,6s/^# *//p' scripts/test.sh ;;
  '') run_stages "${all_stages[@]}" ;;
  *)
    for stage in "$@"; do
      [[ " ${all_stages[*]} " == *" $stage "* ]] || {
        echo "No stage $stage; there are: ${all_stages[*]}" >&2
        exit 64
      }
    done
    run_stages "$@"
    ;;
esac
