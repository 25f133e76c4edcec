#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the writer in Python writes is verified and loaded by the library, and read by the second reader, bit for bit.

Random cases (writer_cases.py), each from a number alone: `--first N --cases 1` makes a case again. Some are then copied by
the library with another codec and other blobs, and the second reader reads what the library wrote. At last a series of
the writer: blobs that are linked, and a void directory.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import run_corpus
import writer_cases
from sealpoint_reference.content import checkpoint_digest
from sealpoint_reference.directory import PathDirectory
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.verify import verify_path
from sealpoint_writer import checkpoint, series
from sealpoint_writer.items import Tensor
from sealpoint_writer.layout import NO_STEP

CHAINS = range(12)  # of deltas
COPIED = 4  # one case of so many
COPIES = (("--compress", "zstd"), ("--compress", "none", "--blobs", "1"), ("--chunk", "64KiB", "--blobs", "3"))


def read(folder):
    """Tensors and objects by name, as the second reader loads them."""
    found = Checkpoint(PathDirectory(folder))
    return {name: found.tensor(name) for name in found.tensors}, {name: found.object(name) for name in found.objects}


def by_name(items):
    return {item.name: data for item, data in items.items()}


def faults_of_second_reader(case, folder):
    report = verify_path(folder)
    if report.verdict != "committed":
        yield f"the second reader says {report.verdict}: {'; '.join(map(str, report.violations))}"
    elif read(folder) != (by_name(case.tensors), by_name(case.objects)):
        yield "the second reader loads other bytes"


def faults_of_library(case, folder, said, load):
    verdict, violations, notes = said
    if verdict != "committed" or violations:
        yield f"ckpt verify says {verdict}: {violations}"
    if bool(case.unknown_compat) != any("compat" in note for note in notes):
        yield f"compat bits {case.compat:#x}, and ckpt verify notes {notes}"
    tensors, objects = by_name(case.tensors), by_name(case.objects)
    lines = [f"tensor {len(data)} {name}" for name, data in tensors.items()] + [f"object {name}" for name in objects]
    done = subprocess.run([load, folder], input="\n".join(lines).encode(), capture_output=True, check=False)
    if done.returncode or done.stdout != b"".join((*tensors.values(), *objects.values())):
        yield f"the library loads other bytes: status {done.returncode}, {done.stdout[:200]}"


def faults_of_copy(case, folder, number, ckpt):
    """The library writes the same state in another way."""
    copy = f"{folder}.copy"
    options = COPIES[number // COPIED % len(COPIES)]
    done = subprocess.run([ckpt, "copy", *options, folder, copy], capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"ckpt copy {' '.join(options)}: {done.stderr}"
        return
    if checkpoint_digest(Checkpoint(PathDirectory(copy))) != case.digest():
        yield f"the second reader reads another state of what ckpt copy {' '.join(options)} wrote"
    yield from faults_of_second_reader(case, copy)


def faults_of_chains(folder, ckpt, load):
    """Deltas, deltas of these, and what both readers say of them."""
    chain = [made for number in CHAINS for made in writer_cases.write_chain(number, f"{folder}/{number}")]
    chain += writer_cases.write_deep_chain(f"{folder}/deep")
    said = run_corpus.tool_reports(ckpt, [path for _, path in chain], "--fingerprints")
    for (case, path), answer in zip(chain, said):
        for fault in (*faults_of_second_reader(case, path), *faults_of_library(case, path, answer, load)):
            yield f"chain {path}: {fault}"


def faults_of_series(folder, ckpt):
    """Three checkpoints, of which each links the blob of a frozen tensor, and an attempt that was given up."""
    frozen, moving = (Tensor(name, (64,), 6, 1, 4096) for name in ("frozen", "moving"))
    linked = before = None
    for step in (1, 2, 3):
        attempt = series.begin(folder, step)
        summaries = [attempt.link(linked, before)] if linked else []
        for tensor in (moving,) if linked else (moving, frozen):
            blob = attempt.blob()
            blob.add(tensor, bytes([step]) * 64)
            summaries.append(attempt.write(blob))
        linked, before = linked or summaries[-1], attempt.directory
        attempt.commit(summaries)
        if read(attempt.directory) != ({"frozen": b"\1" * 64, "moving": bytes([step]) * 64}, {}):
            yield f"step {step} of the series holds other bytes"
    abandoned = series.begin(folder, 4)
    abandoned.write(abandoned.blob())
    checkpoint.publish_void(abandoned.directory, NO_STEP)
    done = subprocess.run([ckpt, "verify", "--json", "--series", folder], capture_output=True, text=True, check=False)
    said, = json.loads(done.stdout)["series"]
    if (said["valid_count"], [item["is_void"] for item in said["uncommitted"]], said["forks"]) != (3, [True], []):
        yield f"ckpt verify --series says {said}"
    if pathlib.Path(said["newest"]).name != pathlib.Path(before).name:
        yield f"ckpt verify --series takes {said['newest']} for the newest one"
    found = series.newest(folder)
    if (found.sequence, found.step) != (3, 3):
        yield f"the newest one has sequence {found.sequence} and step {found.step}"


def main():
    parser = argparse.ArgumentParser()
    for option in ("--load", "--ckpt"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=120)
    options = parser.parse_args()
    failed, counts = [], collections.Counter()
    with tempfile.TemporaryDirectory(prefix="sealpoint-writer-") as temporary:
        numbers = range(options.first, options.first + options.cases)
        cases = [writer_cases.make(number) for number in numbers]
        folders = [f"{temporary}/{number}" for number in numbers]
        for case, folder in zip(cases, folders):
            case.write(folder)
        for number, case, folder, said in zip(numbers, cases, folders,
                                              run_corpus.tool_reports(options.ckpt, folders, "--fingerprints")):
            faults = [*faults_of_second_reader(case, folder), *faults_of_library(case, folder, said, options.load)]
            if number % COPIED == 0 and not case.unknown_compat and (case.tensors or case.objects):
                faults += faults_of_copy(case, folder, number, options.ckpt)
                counts["copies"] += 1
            failed += [f"case {number}: {fault}" for fault in faults]
            counts += {"tensors": len(case.tensors), "objects": len(case.objects)}
        failed += faults_of_chains(f"{temporary}/chains", options.ckpt, options.load)
        failed += faults_of_series(f"{temporary}/series", options.ckpt)
    print("\n".join(failed))
    print(f"{len(cases)} checkpoints, {counts['tensors']} tensors, {counts['objects']} objects, {counts['copies']} copies "
          f"by the library, {len(failed)} differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
