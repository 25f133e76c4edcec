#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What it costs to compile each target as users build it, and to read each header that many files name, in seconds of the
# processors, beside what scripts/build_cost.txt records. Fails where something costs 1.3 times its row.
#   scripts/build_cost.sh             everything: some minutes
#   scripts/build_cost.sh --quick     what stands for the rest: one minute
#   scripts/build_cost.sh --record    writes scripts/build_cost.txt anew
# The compiler cache is not used. Rows are in units, so that they hold on other machines: a unit is what compiling
# scripts/build_cost_unit.cc takes in the same run. The Python package is measured if build/venv is there.
set -euo pipefail
cd "$(dirname "$0")/.."
python=OFF
if [ -x build/venv/bin/python ]; then python=ON; fi
mkdir -p build
cmake -S . -B build/cost -G Ninja -D CMAKE_BUILD_TYPE=Release -D BUILD_TESTING=OFF -D SEALPOINT_WITH_CUDA=OFF \
  -D SEALPOINT_BUILD_PYTHON=$python -D Python_EXECUTABLE="$PWD/build/venv/bin/python" >build/cost.configure.log
cmake --build build/cost --target sealpoint_schema_generated >>build/cost.configure.log
exec scripts/build_cost.py build/cost "$@"
