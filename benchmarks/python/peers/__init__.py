# SPDX-License-Identifier: Apache-2.0
"""Sealpoint and other ways to save and load the state of a distributed training, on the same bytes in the same run.

  scripts/benchmarks.sh peers [--quick] [--cold] [--output DIR] ...

workloads.py says what is saved, peer.py what a peer is, by_*.py are the peers, cell.py measures one peer on one workload
in processes of its own, rounds.py runs such cells in turns, report.py and plots.py write what came of them.
"""
