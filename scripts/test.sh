#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds Sealpoint as users do and runs the tests that show that it works (docs/evidence/testing.md says which, and why these).
#   scripts/test.sh             packages gcc python: 12 minutes at most, from nothing, on two idle cores
#   scripts/test.sh --all       these, and what --rest runs: all that a commit must pass
#   scripts/test.sh --rest      deep sanitizers lint frameworks minimal site demo threads aarch64
#   scripts/test.sh --nightly   enumerations models mutants mutants-full newest-torch newest-frameworks frameworks-full
#                               free-threaded fuzz-long presets aarch64-full builds peers release scale: hours
#   scripts/test.sh STAGE...    the named ones of all these
set -euo pipefail
cd "$(dirname "$0")/.."

product_stages=(packages gcc python)
rest_stages=(deep sanitizers lint frameworks minimal site demo threads aarch64)
nightly_stages=(enumerations models mutants mutants-full newest-torch newest-frameworks frameworks-full free-threaded fuzz-long
  presets aarch64-full builds peers release scale)
all_stages=("${product_stages[@]}" "${rest_stages[@]}")

# One more test than there are processors: where ranks are killed or deadlines pass, tests wait most of the time.
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL CTEST_PARALLEL_LEVEL=$((CMAKE_BUILD_PARALLEL_LEVEL + 1))
# One compiler cache for all build folders: paths below the root do not count.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# What ccache asks for to take objects that were compiled with precompiled headers.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
# The presets take warnings for errors, and what pip and the tests of installing build, as users do, does not: the same objects.
# Those of a preset come first, so that none with a warning is kept.
export CCACHE_IGNOREOPTIONS=-Werror
# Without a home Go has no cache, and builds nothing.
export GOCACHE=${GOCACHE:-$PWD/build/go-cache}
# Where runs write what they counted (docs/evidence/testing-counts.md).
export SEALPOINT_RESULTS=$PWD/build/results
mkdir -p "$SEALPOINT_RESULTS"

# Configures, builds and tests; what each step takes is in CMakePresets.json.
workflow() { cmake --workflow --preset "$1"; }
# Runs a script that needs the archive of Debian. Where that cannot be reached (exit status 77), the stage ends and passes.
from_archive() {
  local status=0
  "$@" || status=$?
  [ "$status" -ne 77 ] || exit 0
  return "$status"
}
check_counts() { scripts/testing_table.py --check "$SEALPOINT_RESULTS"; }
# The preset clang compiles each source alone.
each_source() {
  cmake --preset clang -D SEALPOINT_WITH_CUDA=OFF -D SEALPOINT_BUILD_PYTHON=ON \
    -D Python_EXECUTABLE="$PWD/build/venv/bin/python" >build/clang.configure.log
  cmake --build build/clang --target sealpoint_schema_generated
  scripts/each_source.py build/clang
}

stage_packages() { scripts/install_packages.sh; }

# g++, in pieces of many sources, as users build.
stage_gcc() {
  rm -f "$SEALPOINT_RESULTS"/*.json
  workflow gcc
  check_counts
}

# The Python package, with the interpreter and the packages that python/requirements*.txt pin, and as pip installs it from a
# clone.
stage_python() {
  scripts/python_env.sh
  workflow python
}

# The rest of the build of gcc, and the tests that need many runs.
stage_deep() {
  workflow deep
  check_counts
}

# clang, AddressSanitizer and UndefinedBehaviorSanitizer: tests of one process, and the fuzz target that stands for
# all for a moment.
stage_sanitizers() {
  workflow sanitizers
  scripts/fuzz.sh --build build/asan-ubsan --seconds "${FUZZ_SECONDS:-3}"
}

# clang, ThreadSanitizer: the modules with threads of their own.
stage_threads() { workflow threads; }

# g++ without MPI and without CUDA: everything builds. Most objects are those of the stage gcc.
stage_minimal() { workflow minimal; }

# The Python package with Megatron-core, torchtitan and others, and beside the peers.
stage_frameworks() {
  scripts/python_env.sh
  workflow frameworks
}

# g++ for aarch64, in pieces of many sources; qemu runs the tests of bytes, files and memory.
stage_aarch64() {
  from_archive scripts/aarch64_sysroot.sh
  workflow aarch64
}

# clang-format; clang-tidy over lib and readers, each module in one piece.
stage_lint() {
  git ls-files '*.h' '*.cc' '*.cu' | xargs clang-format-19 --dry-run --Werror
  cmake --preset tidy >build/tidy.configure.log
  cmake --build build/tidy --target sealpoint_schema_generated
  scripts/tidy.py build/tidy
}

# The site of the documentation, without a dead link.
stage_site() { scripts/site.sh; }

# The demonstration of README.
# With the name by which the presets call the compiler: another one finds none of their objects in the cache.
stage_demo() { CXX=g++ scripts/demo.sh; }

# By night: the same questions at full length. First the tests that tests/nightly.txt names, in the build folders of a commit.
stage_enumerations() {
  workflow enumerations
  check_counts
  scripts/python_env.sh
  each_source
  workflow python-nightly
}
stage_models() { scripts/model.sh; }
# Each protective step taken out, one at a time: a test must fail. First syncs, publications and compares of digests.
stage_mutants() {
  scripts/mutants.py --quick
  check_counts
}
stage_mutants-full() {
  scripts/mutants.py
  check_counts
}
stage_newest-torch() { scripts/newest_torch.sh; }
stage_newest-frameworks() { scripts/newest_frameworks.sh; }
stage_frameworks-full() { scripts/frameworks.sh; }
stage_free-threaded() { from_archive scripts/free_threaded.sh; }
stage_fuzz-long() {
  cmake --preset asan-ubsan -D SEALPOINT_NIGHTLY_TESTS=ON >build/asan-ubsan.configure.log
  cmake --build build/asan-ubsan --target fuzzers
  scripts/fuzz.sh --build build/asan-ubsan --seconds "${FUZZ_SECONDS:-300}"
}
# All targets of the presets of which the stages above build a part; the tests of the night with ASan and UBSan, and with TSan all
# that have threads, but for the long enumerations of crashes.
stage_presets() {
  local preset
  for preset in asan-ubsan tsan; do
    cmake --preset "$preset" -D SEALPOINT_NIGHTLY_TESTS=ON >"build/$preset.configure.log"
    cmake --build "build/$preset"
  done
  ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 ctest \
    --test-dir build/asan-ubsan --output-on-failure --no-tests=error -L '^(unit|property|conformance|fuzz)$' -L '^nightly$'
  TSAN_OPTIONS=halt_on_error=1:die_after_fork=0 ctest \
    --test-dir build/tsan --output-on-failure --no-tests=error -L '^threaded$' -LE '^crash$'
}
# All that runs there, with pages of 4 KiB and of 64 KiB: MPI has the launcher of this machine. Then the Debian packages for arm64.
stage_aarch64-full() {
  scripts/aarch64_sysroot.sh
  workflow aarch64-full
  scripts/debian.sh --arm64
}
# As a stranger builds: no preset, CMake's own generator, here with clang. Of the other ordinary ways, g++ Release is the
# stage gcc, whose tests of the label install build without a build type, and a shared library for debugging.
stage_builds() {
  cmake -S . -B build/plain -D CMAKE_CXX_COMPILER=clang++-19 -D CMAKE_BUILD_TYPE=Release -D BUILD_TESTING=OFF \
    -D SEALPOINT_WITH_CUDA=OFF -D SEALPOINT_WERROR=ON \
    >build/plain.configure.log
  cmake --build build/plain
  build/plain/tools/ckpt/ckpt --version
  scripts/build_cost.sh --quick
}
stage_peers() { scripts/peers.sh; }
# What a release hands out, installed in new systems and used: source package, wheels, Debian packages.
stage_release() {
  scripts/wheels.sh
  scripts/debian.sh --wheels
}
stage_scale() { scripts/scale.sh hsdp 1 64; }

# What the tests that failed in a stage printed, 40 lines of each, or else the stage's last lines.
explain() {
  local tests
  tests=$(awk '/^ *[0-9]+\/[0-9]+ Test +#/ { lines = /\*\*\*/ && !/\*\*\*Skipped/ ? 40 : 0 } lines-- > 0' "build/$1.log")
  if [ -n "$tests" ]; then
    printf '\n======== %s failed; its tests ========\n%s\n' "$1" "$tests"
  else
    printf '\n======== %s failed; its last lines ========\n' "$1"
    tail -n 60 "build/$1.log"
  fi
}

# Whether a stage may begin: always, unless SEALPOINT_STAGES_UNTIL, in seconds since 1970, has passed.
has_time() { [ "$(date +%s)" -lt "${SEALPOINT_STAGES_UNTIL:-99999999999}" ]; }

# What a stage prints is kept in build/STAGE.log; why a stage failed is printed once more at the very end. A new shell for each,
# because -e has no effect in the condition of an if. Tests write nothing among the sources.
run_stages() {
  local stage outcome wall user sys failed=() report=() sources
  local TIMEFORMAT='%0R %0U %0S'
  sources=$(git status --porcelain)
  for stage in "$@"; do
    printf '\n======== %s ========\n' "$stage"
    if ! has_time; then
      report+=("$(printf '%-12s not run: no time was left; the night runs it' "$stage")")
      continue
    fi
    outcome=passed
    { time "$BASH" "$0" --run "$stage" 2>&1 | tee "build/$stage.log"; } 2>build/time || outcome=FAILED
    [ $outcome = passed ] || failed+=("$stage")
    read -r wall user sys <build/time
    report+=("$(printf '%-12s %s %5d s, %5d s of the processors' "$stage" "$outcome" "$wall" $((user + sys)))")
  done
  for stage in "${failed[@]}"; do explain "$stage"; done
  if [ "$sources" != "$(git status --porcelain)" ]; then
    printf '\nFiles among the sources are new or changed:\n%s\n' "$(git status --porcelain)"
    failed+=(sources)
  fi
  printf '\n======== summary ========\n'
  printf '%s\n' "${report[@]}"
  [ ${#failed[@]} -eq 0 ]
}

case ${1:-} in
  --run) "stage_$2" ;;
  --all) run_stages "${all_stages[@]}" ;;
  --rest) run_stages "${rest_stages[@]}" ;;
  --nightly) run_stages "${nightly_stages[@]}" ;;
  -h | --help) sed -n '3,9s/^# *//p' scripts/test.sh ;;
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
