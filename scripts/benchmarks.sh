#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the benchmarks and prints the figures of docs/evidence/benchmarks.md. Writes only below the build folder, which lies
# on the file system that is measured, or below $BENCH_DIR.
#
#   scripts/benchmarks.sh [save|background|plan|load|verify|index|small|codec|content]...     default: all
#   scripts/benchmarks.sh peers [--quick] [--cold] [--output DIR] [--folder DIR] ...  beside DCP, torch.save and others
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = peers ]; then
  shift
  exec scripts/peers.sh "$@"
fi

build=build/release
directory=${BENCH_DIR:-$build/bench}
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSEALPOINT_BUILD_TESTS=OFF \
  -DSEALPOINT_BUILD_BENCHMARKS=ON >"$build.log" 2>&1 ||
  { cat "$build.log"; exit 1; }
cmake --build "$build" --target bench_verify bench_index bench_small bench_codec bench_content
[ $# -gt 0 ] || set -- save background plan load verify index small codec content
mkdir -p "$directory"
echo "machine: $(nproc) cores, $(uname -r), file system of $directory: $(stat -f -c %T "$directory")"

# Open MPI as root, with more ranks than cores, without binding ranks to one core.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=self,vader
export OMPI_MCA_btl_vader_single_copy_mechanism=none

for figure in "$@"; do
  case $figure in
    save)
      cmake --build "$build" --target bench_save
      for ranks in 1 2 4; do
        mpirun -n "$ranks" "$build/benchmarks/save/bench_save" --directory "$directory" --mib-per-rank $((512 / ranks))
      done
      ;;
    background)
      cmake --build "$build" --target bench_background
      for ranks in 1 2; do
        mpirun -n "$ranks" "$build/benchmarks/save/bench_background" --directory "$directory"
      done
      ;;
    plan)
      cmake --build "$build" --target bench_plan
      mpirun -n 4 "$build/benchmarks/plan/bench_plan" --directory "$directory"
      ;;
    load)
      cmake --build "$build" --target bench_load bench_reshard bench_slices
      for ranks in 2 4; do
        mpirun -n "$ranks" "$build/benchmarks/load/bench_load" --directory "$directory"
        mpirun -n "$ranks" "$build/benchmarks/load/bench_reshard" --directory "$directory"
        mpirun -n "$ranks" "$build/benchmarks/load/bench_reshard" --directory "$directory" --warm
      done
      "$build/benchmarks/load/bench_slices" --directory "$directory"
      ;;
    verify) "$build/benchmarks/verify/bench_verify" --directory "$directory" ;;
    index) "$build/benchmarks/index/bench_index" ;;
    small) "$build/benchmarks/index/bench_small" --directory "$directory" ;;
    codec) "$build/benchmarks/codec/bench_codec" ;;
    content) "$build/benchmarks/content/bench_content" --directory "$directory" ;;
    *)
      echo "unknown figure: $figure (save, background, plan, load, verify, index, small, codec, content; peers, alone)" >&2
      exit 64
      ;;
  esac
done
