# SPDX-License-Identifier: Apache-2.0
"""Measures Sealpoint beside other ways to save a training, and writes report.md, report.json and pictures.

What is loaded is compared with what was saved in a first round that is not counted. A peer that is not installed, or fails,
is named in the report, and the others go on. Exit status: 0; 1 if Sealpoint failed, a gate did, or the output could not be
written; 64 for a mistake in the arguments.
"""

import argparse
import os
import pathlib
import shutil
import signal
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")

from peers import report  # noqa: E402
from peers.cell import end_soon  # noqa: E402
from peers.peer import MODULES, OURS, peer_class, why_absent  # noqa: E402
from peers.rounds import Options, measure  # noqa: E402
from peers.workloads import workloads  # noqa: E402

QUICK = ("raw", "sealpoint", "dcp", "torch", "safetensors")
# Wide, since machines do other things and states are small: in the best round of each row Sealpoint is at least so many
# times as fast as torch.distributed.checkpoint.
GATE = 0.5


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/benchmarks.sh peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small states, few peers, and gates: for tests")
    parser.add_argument("--cold", action="store_true", help="also reads of files that are not in the page cache")
    parser.add_argument("--output", default="build/peers", help="folder of the report (default: build/peers)")
    parser.add_argument("--folder", help="where checkpoints are written, on the file system to measure (default: --output)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, help="default: 5, with --quick 2")
    parser.add_argument("--mib", type=int, help="size of a state (default: 512, with --quick 32)")
    parser.add_argument("--tensors", type=int, help="count of tiny ones (default: 100000, with --quick 300)")
    parser.add_argument("--limit", type=float,
                        help="seconds that one peer may take for a state in a round (default: 300, with --quick 120)")
    parser.add_argument("--peers", help=f"with commas between them, of {','.join(MODULES)}")
    parser.add_argument("--workloads", help="with commas between them, of transformer,tiny,huge,replicated")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.mib = options.mib or (32 if options.quick else 512)
    options.limit = options.limit or (120 if options.quick else 300)
    options.tensors = options.tensors or (300 if options.quick else 100_000)
    for name in ("ranks", "rounds", "mib", "tensors"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}, expected at least 1")
    return options


def chosen(text, there, what):
    """The names in a list; all without one."""
    names = text.split(",") if text else list(there)
    for name in names:
        if name not in there:
            print(f"no {what} {name}; there are: {', '.join(there)}", file=sys.stderr)
            sys.exit(64)
    return names


def say(text):
    print(text, flush=True)


def find_peers(names):
    """Classes by name, and why the others are absent."""
    absent = {name: why for name in names if (why := why_absent(name)) is not None}
    for name, why in absent.items():
        say(f"{name} is absent: {why}")
    return {name: peer_class(name) for name in names if name not in absent}, absent


def failed_gates(results, made):
    found = []
    for workload in made:
        for operation in results.rows(workload):
            best = max(results.ratios(workload, operation, "dcp"), default=None)
            if best is not None and best < GATE:
                found.append(f"{workload.name}: {operation}: {best:.2f} times as fast as dcp, expected at least {GATE}")
    return found


def gate(results, made, peers, options):
    """A round takes tenths of seconds, so that one slow sync may decide: what fails is measured once more."""
    slow = [workload for workload in made if failed_gates(results, [workload])]
    if not slow:
        return []
    say(f"too slow, measured once more: {', '.join(workload.name for workload in slow)}")
    return failed_gates(measure(slow, peers, options, say), slow)


def write(output, results, made, peers, absent, options, facts):
    arguments = (results, made, peers, absent, options, facts)
    (output / "report.md").write_text(report.markdown(*arguments))
    (output / "report.json").write_text(report.as_json(*arguments))
    try:
        from peers import plots

        plots.draw(results, made, peers, output)
    except ImportError as error:
        say(f"no pictures: {error}")
    say(f"{output}/report.md")


def main(arguments):
    given = parse(arguments)
    all_workloads = workloads(given.mib, given.tensors, given.ranks)
    made = [all_workloads[name] for name in chosen(given.workloads, all_workloads, "workload")]
    output = pathlib.Path(given.output)
    place = None
    try:
        output.mkdir(parents=True, exist_ok=True)
        # The folder may be shared: what is made in it goes again.
        place = pathlib.Path(tempfile.mkdtemp(prefix="peers-", dir=given.folder or output)).resolve()
        names = chosen(given.peers, MODULES, "peer") if given.peers or not given.quick else QUICK
        peers, absent = find_peers(names)
        options = Options(place, given.ranks, given.rounds, given.cold, given.limit)
        facts = report.machine(place)
        results = measure(made, peers, options, say)
        slow = gate(results, made, peers, options) if given.quick else []
        write(output, results, made, peers, absent, options, facts)
    except OSError as error:
        print(f"benchmarks peers: {error}", file=sys.stderr)
        return 1
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
    problems = [f"{workload}: {OURS} failed: {why}" for (workload, name), why in results.errors.items() if name == OURS]
    problems += [f"{OURS} is absent: {absent[OURS]}"] if OURS in absent else []
    problems += slow
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    # Ends as after an error: nothing is left but what was there before.
    signal.signal(signal.SIGTERM, end_soon)
    sys.exit(main(sys.argv[1:]))
