#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks the SPIN models of the protocol (spec/model/README.md).
#   scripts/model.sh                   all bounds; every mutant must have a counterexample
#   scripts/model.sh --quick           the small bounds, as in CI
#   scripts/model.sh [--quick] MODEL…  only these: cleanup commit links listing objects prune removal writers
#   scripts/model.sh --quick --write   also makes spec/model/counterexamples.md anew
# Exit status 1 on any surprise, 77 where spin or gcc is missing. Works in build/model.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  -h | --help) sed -n '3,8s/^# *//p' scripts/model.sh ;;
  *) exec python3 tests/model/run_models.py "$@" ;;
esac
