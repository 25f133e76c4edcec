#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The long forms of the tests in tests/system: every system call, every error, every rank. Build first (preset dev).
#   scripts/system_faults.sh              all of them, about half an hour on two cores
#   scripts/system_faults.sh NAME...      some of: kill errors strace space stopped_rank exit power_cut preload
# BUILD=path names another build folder. Root is needed for power_cut, and for space where user namespaces are off.
# What is counted goes into the folder named by SEALPOINT_RESULTS (docs/evidence/testing-counts.md).
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build/dev}
programs=$build/tests/system
launcher=$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
tests=("$@")
if [ ${#tests[@]} -eq 0 ]; then tests=(kill errors strace space stopped_rank exit power_cut preload); fi

# As SEALPOINT_MPI_ENVIRONMENT in cmake/SealpointTests.cmake.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
export PYTHONDONTWRITEBYTECODE=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none

failed=()
for test in "${tests[@]}"; do
  status=0
  python3 "tests/system/${test}_test.py" "$programs/system_save_probe" "$programs/system_save_probe_mpi" \
    "$build/examples/train_char_lm/train_char_lm" "$programs/system_call_faults" "$build/tools/ckpt/ckpt" "$launcher" \
    "$programs/libsystem_preload_shim.so" --all || status=$?
  # 77: the machine does not offer what the test needs, as it said.
  if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then failed+=("$test"); fi
done
echo "failed: ${failed[*]:-none}"
[ ${#failed[@]} -eq 0 ]
