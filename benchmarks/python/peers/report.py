# SPDX-License-Identifier: Apache-2.0
"""The report: for people (report.md) and programs (report.json)."""

import dataclasses
import json
import os
import pathlib
import platform

from peers.cell import __doc__ as operations_doc
from peers.peer import OURS
from peers.rounds import median

MIB = 1 << 20


def spread(values, form):
    """The median, and the least and the greatest if they differ as printed."""
    texts = [form.format(value) for value in (median(values), min(values), max(values))]
    return texts[0] if texts[0] == texts[1] == texts[2] else f"{texts[0]} ({texts[1]} to {texts[2]})"


def machine(folder):
    model = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    kind = os.statvfs(folder)
    return {"processor": model[0] if model else platform.machine(), "processors": os.cpu_count(),
            "kernel": platform.release(), "python": platform.python_version(),
            "load_before": round(os.getloadavg()[0], 2), "block_bytes": kind.f_bsize}


def cell_of(results, workload, operation, name, ranks):
    """A line of the table of an operation; None if there are no figures."""
    figures = results.of(workload, operation, name)
    if figures is None:
        return None
    ratios = results.ratios(workload, operation, name)
    is_read = operation.split(",")[0] in ("load", "reshard", "one", "slice", "verify")
    read = figures.read_storage if operation.endswith("cold") else figures.read_calls
    return [
        name, spread(figures.rates(), "{:.3g}"), "" if name == OURS or not ratios else spread(ratios, "{:.3g}"),
        spread([count / figures.nbytes for count in read], "{:.2f}") if is_read else "",
        spread([peak / MIB for peak in figures.peak_bytes], "{:.0f}"),
        spread([seconds * 1e9 / figures.nbytes for seconds in figures.cpu_seconds], "{:.3g}"),
        str(len(figures.rounds)),
    ]


HEAD = ["", "GB/s", "Sealpoint is so many times as fast", "read ÷ requested", "peak memory, MiB", "CPU s per GB", "rounds"]

COLUMNS = """*read ÷ requested*: bytes that calls of read() returned on all ranks, by /proc/self/io; of a file that a peer
maps they do not count. With a cold cache: bytes that came from the device, mapped files included. *Peak memory*: the most
resident memory of a rank (VmHWM, mapped files included) beyond the state and the memory to load into, in a process that runs
this peer alone."""


def table(head, lines):
    return ["| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines]]


def overview(results, workloads, names):
    """A line per operation: how many times as fast as each peer Sealpoint is."""
    lines = []
    for workload in workloads:
        for operation in results.rows(workload):
            ours = results.of(workload, operation, OURS)
            rates = f"{median(ours.rates()):.3g}" if ours else "–"
            ratios = [median(results.ratios(workload, operation, name)) for name in names if name != OURS]
            lines.append([workload.name, operation, rates,
                          *("–" if ratio is None else f"{ratio:.3g}" for ratio in ratios)])
    return table(["state", "operation", "Sealpoint, GB/s", *(name for name in names if name != OURS)], lines)


def markdown(results, workloads, peers, absent, options, facts):
    text = ["# Sealpoint and its peers", ""]
    text += ["; ".join(f"{name} {value}" for name, value in facts.items()), ""]
    text += [f"{options.ranks} ranks, {options.rounds} rounds in turns behind one in which what was loaded was compared. "
             "Figures are medians, with the least and the greatest. Ratios are those of times in the same round.", ""]
    text += ["## How many times as fast as each peer", "", "`raw` is no peer but what the machine allows.", ""]
    text += [*overview(results, workloads, list(peers)), ""]
    for workload in workloads:
        text += [f"## {workload.name}: {workload.what}; {workload.nbytes / 1e6:.0f} MB", ""]
        for operation in results.rows(workload):
            lines = [cell_of(results, workload, operation, name, options.ranks) for name in peers]
            text += [f"### {workload.name}: {operation}", "", *table(HEAD, [line for line in lines if line]), ""]
        failed = [f"- {name} failed: {why}" for (place, name), why in results.errors.items() if place == workload.name]
        text += [*failed, ""] if failed else []
    text += ["## Operations and columns", "", "```text",
             *operations_doc.split("\n\n", 1)[1].strip("\n").splitlines(), "```", ""]
    text += [COLUMNS, ""]
    text += ["## Peers and their options", ""]
    text += [f"- **{name}**{peer.version() and ' ' + peer.version()}: {peer.options}." for name, peer in peers.items()]
    text += [f"- **{name}** is absent: {why}." for name, why in absent.items()]
    return "\n".join(text).rstrip() + "\n"


def as_json(results, workloads, peers, absent, options, facts):
    rows = []
    for workload in workloads:
        for operation in results.rows(workload):
            for name in peers:
                figures = results.of(workload, operation, name)
                if figures is not None:
                    rows.append({"workload": workload.name, "operation": operation, "peer": name,
                                 **dataclasses.asdict(figures), "sealpoint_is_times_as_fast":
                                 results.ratios(workload, operation, name)})
    errors = [{"workload": place, "peer": name, "error": why} for (place, name), why in results.errors.items()]
    document = {
        "machine": facts, "ranks": options.ranks, "rounds": options.rounds, "cold": options.with_cold,
        "peers": {name: {"version": peer.version(), "options": peer.options} for name, peer in peers.items()},
        "absent": absent, "workloads": {w.name: {"what": w.what, "bytes": w.nbytes} for w in workloads},
        "rows": rows, "errors": errors,
    }
    return json.dumps(document, indent=1) + "\n"
