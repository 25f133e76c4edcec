#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds Sealpoint as users do and runs the tests that show that it works (docs/testing.md says which, and why these).
#   scripts/test.sh             packages gcc python: 15 minutes at most, from nothing, on two cores
#   scripts/test.sh --all       these, and what --rest runs: all that a commit must pass
#   scripts/test.sh --rest      deep sanitizers threads minimal frameworks builds mutants lint demo
#   scripts/test.sh --nightly   models mutants-full newest-torch frameworks-full fuzz-long peers scale: hours
#   scripts/test.sh STAGE...    the named ones of all these
set -euo pipefail
cd "$(dirname "$0")/.."

product_stages=(packages gcc python)
rest_stages=(deep sanitizers threads minimal frameworks builds mutants lint demo)
nightly_stages=(models mutants-full newest-torch frameworks-full fuzz-long peers scale)
all_stages=("${product_stages[@]}" "${rest_stages[@]}")
# Kinds of tests that go through many states, faults or processes: the stage deep. All others are those of the stage gcc.
deep_kinds=(background crash damage deep fault model mutants scale system)
jobs=$(nproc)
fuzz_seconds=${FUZZ_SECONDS:-3}
# One more than there are processors: where ranks are killed or deadlines pass, tests wait most of the time.
tests_at_once=$((jobs + 1))

# One cache for all build folders: paths below the root do not count.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# What ccache asks for to take objects that were compiled with precompiled headers.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
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

# Compiles what a preset's tests do not need, so that each preset compiles all of its sources; nothing of it is linked.
# With the compiler cache that takes seconds; without, minutes of compiling what other stages compile and run. So it is left
# out if more than a tenth of the sources that were compiled for this preset were not in the cache. Before it: count_hits.
compile_rest() {  # preset
  local log=build/$1.compiled misses=0 hits=0 objects
  if [ -e "$log" ]; then
    misses=$(grep -cx cache_miss "$log" || true)
    hits=$(grep -cxE '(direct|preprocessed)_cache_hit' "$log" || true)
  fi
  ((hits + misses > 0)) || return 0  # whoever compiled them has been here
  local found="of $((hits + misses)) sources $hits were in the compiler cache"
  if ! command -v ccache >/dev/null || ((10 * misses > hits + misses)); then
    echo "preset $1: what its tests do not need is not compiled: $found"
    return
  fi
  mapfile -t objects < <(ninja -C "build/$1" -t targets all | sed -nE 's/^(.*\.o): CXX_COMPILER.*/\1/p')
  ninja -C "build/$1" -j "$jobs" "${objects[@]}"
  echo "preset $1: all sources are compiled: $found"
}

# From now on ccache writes down what it finds, for compile_rest.
count_hits() {  # preset
  rm -f "build/$1.compiled"
  export CCACHE_STATSLOG=$PWD/build/$1.compiled
}

stage_packages() { scripts/install_packages.sh; }

# g++, each source of library, tools and examples by itself and without -Werror, as users build; so a warning is looked for in
# what the compiler printed, which ccache repeats.
build_check() {  # targets...
  build check "$@" 2>&1 | tee build/check.compiled.log
  if grep -A 5 'warning:' build/check.compiled.log >build/check.warnings.log; then
    echo "The compiler warns: a project that takes warnings for errors could not build this."
    cat build/check.warnings.log
    return 1
  fi
}
kinds() {  # a separator; the kinds of the stage deep
  local IFS=$1
  echo "${deep_kinds[*]}"
}
build_gcc() {
  local targets
  configure check
  mapfile -t targets < <(ninja -C build/check -t targets all | sed -nE 's/^(sealpoint_tests_[a-z_]+): phony$/\1/p' |
    grep -vxE "sealpoint_tests_($(kinds '|')|single_process|threaded)")
  build_check sealpoint tools/all examples/all tests/install/all tests/readme/all "${targets[@]}"
}
stage_gcc() {
  rm -f "$SEALPOINT_RESULTS"/*.json
  ctest --test-dir build/check -j "$tests_at_once" -LE "^($(kinds '|'))\$"
  scripts/testing_table.py --check "$SEALPOINT_RESULTS"
}

# The rest of that build, the tests that need many runs, and each source of the tests alone.
build_deep() {
  configure check
  build_check
  cmake --preset clang -D SEALPOINT_WITH_CUDA=OFF >build/clang.configure.log
  build clang sealpoint_schema_generated
}
stage_deep() {
  scripts/each_source.py build/clang
  ctest --test-dir build/check -j "$tests_at_once" -L "^($(kinds '|'))\$"
  scripts/testing_table.py --check "$SEALPOINT_RESULTS"
}

# clang, AddressSanitizer and UndefinedBehaviorSanitizer: tests of one process, and each fuzz target for a moment.
build_sanitizers() {
  configure asan-ubsan
  count_hits asan-ubsan
  build asan-ubsan sealpoint_tests_single_process fuzzers
  compile_rest asan-ubsan
}
stage_sanitizers() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  ctest --test-dir build/asan-ubsan -j "$tests_at_once" -L '^(unit|property|conformance|fuzz)$'
  scripts/fuzz.sh --build build/asan-ubsan --seconds "$fuzz_seconds"
}

# clang, ThreadSanitizer, the library shared: what has threads.
build_threads() {
  configure tsan
  count_hits tsan
  build tsan sealpoint sealpoint_tests_threaded
  compile_rest tsan
}
stage_threads() {
  export TSAN_OPTIONS=halt_on_error=1:die_after_fork=0  # tests fork and start threads in the child
  ctest --test-dir build/tsan -j "$tests_at_once" -L '^threaded$'
}

# g++ without MPI and without CUDA: everything builds. Most objects are those of the stage gcc, whose tests have run;
# here only those run that can notice what is missing.
build_minimal() {
  configure no-mpi
  build no-mpi
}
stage_minimal() {
  ctest --test-dir build/no-mpi -j "$tests_at_once" -R '^(unit\.(device|pipeline|load.*)|conformance\.readers|readme\..*)$'
}

# The Python package, with the interpreter and the packages that python/requirements*.txt pin, and as pip installs it from a
# clone. Objects are those of the stage gcc.
build_python() {
  scripts/python_env.sh
  configure python
  build python sealpoint_python ckpt-verify ckpt-inspect safetensors_for_python
}
stage_python() { ctest --test-dir build/python -j "$tests_at_once" -L '^python$'; }

# The same with Megatron-core, torchtitan and others, and beside the peers.
build_frameworks() { build_python; }
stage_frameworks() { ctest --test-dir build/python -j "$tests_at_once" -L '^frameworks$'; }

# As a stranger builds: no preset, CMake's own generator, here with clang. Of the other ordinary ways, g++ Release is the
# stage gcc, whose tests of the label install build without a build type, and a shared library for debugging. Each module and
# each program is one source, as for clang-tidy: cheap, and a name that is defined twice in one is seen.
build_builds() {
  cmake -S . -B build/plain -D CMAKE_CXX_COMPILER=clang++-19 -D CMAKE_BUILD_TYPE=Release -D BUILD_TESTING=OFF \
    -D SEALPOINT_WITH_CUDA=OFF -D SEALPOINT_WERROR=ON -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=0 >build/plain.configure.log
  build plain
}
stage_builds() { build/plain/tools/ckpt-verify/ckpt-verify --version; }

# Each sync, publication and compare of digests taken out, one at a time: a test must fail.
build_mutants() { scripts/mutants.py --quick --build-only; }
stage_mutants() {
  scripts/mutants.py --quick
  scripts/testing_table.py --check "$SEALPOINT_RESULTS"
}

# clang-format; clang-tidy over lib and readers, each module in one piece.
build_lint() {
  configure tidy
  if grep -q index_generated build/tidy/build.ninja; then build tidy sealpoint_schema_generated; fi
}
stage_lint() {
  git ls-files '*.h' '*.cc' '*.cu' | xargs clang-format-19 --dry-run --Werror
  scripts/tidy.py build/tidy
}

# The demonstration of README.
stage_demo() { scripts/demo.sh; }

# By night: the same questions at full length.
stage_models() { scripts/model.sh; }
stage_mutants-full() {
  scripts/mutants.py
  scripts/testing_table.py --check "$SEALPOINT_RESULTS"
}
stage_newest-torch() { scripts/newest_torch.sh; }
stage_frameworks-full() { scripts/frameworks.sh; }
stage_fuzz-long() {
  build_sanitizers
  scripts/fuzz.sh --build build/asan-ubsan --seconds "${FUZZ_SECONDS:-300}"
}
stage_peers() { scripts/peers.sh; }
stage_scale() { scripts/scale.sh hsdp 1 64; }

# Makes what a stage needs. A stage waits while that is being made ahead of it.
build_stage() {  # stage
  if [ "$(type -t "build_$1")" != function ]; then return 0; fi
  exec 9>"build/$1.lock"
  flock 9
  "build_$1" 9>&-
}

# Tests wait for time-outs, disks and each other. Meanwhile later stages are built, as far as no test wants the processors.
# What fails here is tried again, and shown, by the stage itself.
build_ahead() {  # stages...
  local stage
  for stage in "$@"; do
    "$BASH" "$0" --build "$stage" >"build/$stage.ahead.log" 2>&1 || true
  done
}

ahead=''
# Once the first stage that compiles is built: it fills the compiler cache for the others.
begin_ahead() {  # the stage that was built, later stages...
  if [ -n "$ahead" ] || [ "$1" = packages ] || (($# == 1)); then return 0; fi
  # A process group of its own, to be ended with, but no session: by sched_autogroup(7) nice values count within one.
  set -m
  nice -n 19 "$BASH" "$0" --ahead "${@:2}" >/dev/null 2>&1 </dev/null &
  ahead=$!
  set +m
  # It may have ended long ago. With -e, a trap's own failure would be this script's.
  trap 'kill -- "-$ahead" 2>/dev/null || true' EXIT
}

# Sets cpu to the seconds of the processors that ended children of this shell took; the builder ahead is the last of them.
count_cpu() {
  local user sys part
  times >build/times  # no pipe: it would be a shell of its own, with children of its own
  { read -r _; read -r user sys; } <build/times
  cpu=0
  for part in "$user" "$sys"; do
    part=${part%[.,]*}  # 1m23.456s
    cpu=$((cpu + 60 * ${part%m*} + ${part#*m}))
  done
}

# What a stage prints is kept in build/STAGE.log; the end of a failed stage's is printed once more at the very end.
# A new shell for each, because -e has no effect in the condition of an if.
run_stages() {
  local started failed=() report=() cpu before outcome
  while (($#)); do
    printf '\n======== %s ========\n' "$1"
    started=$SECONDS
    count_cpu
    before=$cpu
    outcome=passed
    if ! { "$BASH" "$0" --build "$1" 2>&1 | tee "build/$1.log" && begin_ahead "$@" &&
      "$BASH" "$0" --run "$1" 2>&1 | tee -a "build/$1.log"; }; then
      failed+=("$1")
      outcome=FAILED
    fi
    count_cpu
    report+=("$(printf '%-12s %s %5d s, %5d s of the processors' "$1" "$outcome" $((SECONDS - started)) $((cpu - before)))")
    shift
  done
  local stage
  for stage in "${failed[@]}"; do
    printf '\n======== %s failed; its last lines ========\n' "$stage"
    tail -n 60 "build/$stage.log"
  done
  printf '\n======== summary ========\n'
  printf '%s\n' "${report[@]}"
  [ ${#failed[@]} -eq 0 ]
}

case ${1:-} in
  --build) build_stage "$2" ;;
  --ahead) build_ahead "${@:2}" ;;
  --run) "stage_$2" ;;
  --all) run_stages "${all_stages[@]}" ;;
  --rest) run_stages "${rest_stages[@]}" ;;
  --nightly) run_stages "${nightly_stages[@]}" ;;
  -h | --help) sed -n '3,8s/^# *//p' scripts/test.sh ;;
  '') run_stages "${product_stages[@]}" ;;
  *)
    for stage in "$@"; do
      [[ " ${all_stages[*]} ${nightly_stages[*]} " == *" $stage "* ]] || {
        echo "No stage $stage; there are: ${all_stages[*]} ${nightly_stages[*]}" >&2
        exit 64
      }
    done
    run_stages "$@"
    ;;
esac
