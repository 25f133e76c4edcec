#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reader in Go (readers/go) must say of every entry of the conformance corpus what its table says, and read the content.

Verdict and list of full verification, what opening and what reading everything meets, and, where the content loads, its
content digest, which the second reader computes as well; notes are compared with those of the second reader. Then random
checkpoints of the writer in Python, with and without fingerprints, whose content digests are of the bytes that were to be
written; chains of deltas; hostile change lists; checkpoints with broken fingerprints (unit/fingerprint_cases.py); and random
damages (damages.py), of which both readers and the library must say the same.

Without Go, or without Debian's golang-github-klauspost-compress-dev, the test is skipped (status 77).
"""

import argparse
import functools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
from unittest import mock

sys.path.append(str(pathlib.Path(__file__).parent / "unit"))

import fingerprint_cases
import fixtures
import run_corpus
import writer_cases
from damages import damaged
from sealpoint_reference.content import checkpoint_digest
from sealpoint_reference.directory import MemoryDirectory, PathDirectory
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.registries import COMPAT_FINGERPRINTS
from sealpoint_reference.verify import verify, verify_path
from sealpoint_writer.checkpoint import Attempt
from sealpoint_writer.codec import CODEC_CHANGES, change_list, plain_frame
from sealpoint_writer.items import Tensor
from sealpoint_writer.ranks import hold, write_blobs

SKIPPED = 77
ZSTD = "github.com/klauspost/compress/zstd"
WRITER_CASES = range(1000, 1040)
CHAINS = range(12)  # of deltas
LISTS = range(200)
DAMAGES = 2000
# A padding that one reader looked at behind an end that the trailer contradicts.
DISAGREED = {4488: "good-zstd_blocks_of_the_window"}
BATCH = 500  # checkpoints of one command
DAMAGED_BYTES_MAX = 60000  # of a checkpoint; Python hashes some MB/s


def environment(work):
    """Packages come from where Debian installs them, or from a GOPATH before it, and none is fetched."""
    paths = filter(None, [os.environ.get("GOPATH"), "/usr/share/gocode"])
    return dict(os.environ, GO111MODULE="off", GOFLAGS="", GOPROXY="off", GOCACHE=str(work / "cache"), HOME=str(work),
                GOPATH=os.pathsep.join(paths))


def go(work, source, *words):
    return subprocess.run(["go", *words], cwd=source, env=environment(work), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def missing(work, source):
    """Why the reader cannot be built here, or None."""
    if shutil.which("go") is None:
        return "go is not installed"
    listed = go(work, source, "list", ZSTD)
    return f"Go does not find {ZSTD}: {listed.stdout.strip()}" if listed.returncode else None


def build(work, source):
    for words in (["vet", "."], ["test", "."], ["build", "-o", str(work / "sealpoint-reader"), "."]):
        done = go(work, source, *words)
        if done.returncode:
            sys.exit(f"go {' '.join(words)}: {done.stdout}")
    formatted = subprocess.run(["gofmt", "-l", source], capture_output=True, text=True, check=False)
    if formatted.stdout or formatted.returncode:
        sys.exit(f"gofmt would change {formatted.stdout}{formatted.stderr}")
    return work / "sealpoint-reader"


def reports(program, folders, *options):
    """What the reader says of each folder, and its exit status."""
    done = subprocess.run([program, *options, *folders], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if len(lines) != len(folders):
        sys.exit(f"{len(lines)} answers about {len(folders)} checkpoints: {done.stderr}")
    return [json.loads(line) for line in lines], done.returncode


def key(violation):
    return violation and (violation["code"], violation["rule"], violation["file"])


def entry_faults(row, folder, said):
    found = {key(violation) for violation in said["violations"]}
    expected = run_corpus.expected_violations(row)
    if (said["verdict"], found) != (run_corpus.expected_verdict(row), expected):
        yield f"the table says {row}; the reader in Go: {said}"
    second = verify_path(folder)
    if said["notes"] != second.notes:
        yield f"the second reader notes {second.notes}, the reader in Go {said['notes']}"
    if isinstance(row, run_corpus.ListRow):
        return
    for operation in ("open", "read"):
        wanted = next(iter(expected)) if row.seen_by == operation else None
        if key(said[operation]) != wanted:
            yield f"{operation} meets {said[operation]} instead of {wanted}"
    content = checkpoint_digest(Checkpoint(PathDirectory(folder))) if row.seen_by in ("-", "verify") else ""
    if said["content"] != content:
        yield f"it reads {said['content'] or 'nothing'} instead of {content or 'nothing'}"


def writer_faults(program):
    with tempfile.TemporaryDirectory(prefix="sealpoint-go-") as temporary:
        cases = [writer_cases.make(number) for number in (*WRITER_CASES, *WRITER_CASES)]
        folders = [f"{temporary}/{number}" for number in range(len(cases))]
        for number, (case, folder) in enumerate(zip(cases, folders)):
            case.compat |= COMPAT_FINGERPRINTS if number >= len(WRITER_CASES) else 0
            case.write(folder)
        for case, folder, said in zip(cases, folders, reports(program, folders, "-fingerprints")[0]):
            if (said["verdict"], said["content"]) != ("committed", case.digest()):
                yield f"case {folder} of the writer: {said}"


def chain_faults(program):
    with tempfile.TemporaryDirectory(prefix="sealpoint-go-") as temporary:
        chain = [made for number in CHAINS for made in writer_cases.write_chain(number, f"{temporary}/{number}")]
        chain += writer_cases.write_deep_chain(f"{temporary}/deep")
        for (case, path), said in zip(chain, reports(program, [path for _, path in chain], "-fingerprints")[0]):
            if (said["verdict"], said["content"]) != ("committed", case.digest()):
                yield f"a chain of deltas, {path}: {said}"
        base, delta = (path for _, path in chain[:2])
        elsewhere = shutil.move(base, f"{temporary}/elsewhere")
        for options, expected in ([], "incomplete"), (["-base", elsewhere], "committed"):
            (said,), _ = reports(program, [delta], *options)
            if said["verdict"] != expected:
                yield f"a base elsewhere, with {options}: {said}"


def hostile_list(generator, raw, base, element_size):
    """A good list, of which some bytes were changed, in a frame that is changed now and then."""
    list_bytes = bytearray(b"".join(change_list(raw, base, element_size)))
    for _ in range(generator.randint(0, 2)):
        at = generator.choice((generator.randrange(8), generator.randrange(len(list_bytes))))
        list_bytes[at] = generator.choice((0, 1, 254, 255, generator.randrange(256)))
    frame = bytearray(plain_frame([bytes(list_bytes)]))
    if generator.random() < 0.3:
        frame[generator.randrange(16)] ^= 1 << generator.randrange(8)
    return CODEC_CHANGES, bytes(frame)


def list_faults(program):
    """Both readers say the same of a checkpoint whose one chunk has such a list."""
    tensor = Tensor("w", (600,), 11, 2, 4096)
    with tempfile.TemporaryDirectory(prefix="sealpoint-go-") as temporary, mock.patch("os.fsync"):
        base = Attempt(f"{temporary}/base")
        base.commit(write_blobs(base, [[hold(tensor, bytes(1200))]]))
        folders = [f"{temporary}/{number}" for number in LISTS]
        named = {base.id: PathDirectory(base.directory)}
        for number, folder in zip(LISTS, folders):
            generator = random.Random(number)
            raw = writer_cases.changed(generator, b"\1" + bytes(1199), 2)
            with mock.patch("sealpoint_writer.blob.encode_changes", functools.partial(hostile_list, generator)):
                attempt = Attempt(folder, base=base.directory)
                attempt.commit(write_blobs(attempt, [[hold(tensor, raw, codec=CODEC_CHANGES)]]))
        seen = set()
        for folder, said in zip(folders, reports(program, folders, "-base", base.directory)[0]):
            here = [(violation.rule, violation.file) for violation in verify_path(folder, bases=named).violations]
            there = [(violation["rule"], violation["file"]) for violation in said["violations"]]
            seen |= {rule for rule, _ in here}
            if here != there:
                yield f"list {folder}: the second reader says {here}, the reader in Go {said}"
        if not seen >= {"R-DLT-06", "R-DLT-07", "R-CHK-02", "R-COD-06"}:
            yield f"hostile lists break {seen}"


def fingerprint_faults(program):
    with tempfile.TemporaryDirectory(prefix="sealpoint-go-") as temporary:
        cases = list(fingerprint_cases.cases())
        folders = [pathlib.Path(temporary, str(number)) for number in range(len(cases))]
        for (_, files, _), folder in zip(cases, folders):
            folder.mkdir()
            for name, data in files.items():
                (folder / name).write_bytes(data)
        for option, skipped in (["-fingerprints"], ()), (["-level=full"], ("R-FPR-03",)):
            for (what, _, expected), said in zip(cases, reports(program, folders, *option)[0]):
                found = {(violation["rule"], violation["file"]) for violation in said["violations"]}
                if found != {(rule, file) for rule, file in expected if rule not in skipped}:
                    yield f"fingerprints, {what}, {option}: {said}"


def fixture_faults(program, archives):
    with tempfile.TemporaryDirectory(prefix="sealpoint-go-") as temporary:
        listed = fixtures.unpack(archives, temporary)
        for (path, facts), said in zip(listed.items(), reports(program, list(listed))[0]):
            expected = ("unsupported", "") if fixtures.is_draft(path) else ("committed", facts["content"])
            if (said["verdict"], said["content"]) != expected:
                yield f"fixture {path.name}: {said}, expected {expected}"


def is_same(*answers):
    """Whether verdicts and sets of (rule, file) are the same. A FlatBuffer may break several rules, of which any may be reported,
    with its verdict (reader-rules.md, section 3)."""
    if all(violations == answers[0][1] for _, violations in answers):
        return len({verdict for verdict, _ in answers}) == 1
    steps = [{("R-IDX" if rule.startswith("R-IDX") else rule, file) for rule, file in violations} for _, violations in answers]
    return all(step == steps[0] for step in steps)


def damage_faults(program, ckpt, corpus, count):
    """Both readers and the library say the same of damaged checkpoints: good entries of the corpus, and those of the writer."""
    with tempfile.TemporaryDirectory(prefix="sealpoint-go-") as temporary:
        folders = [folder for folder in sorted(corpus.glob("good-*")) if not folder.name.startswith("good-R-DIR")]
        for number in WRITER_CASES:
            folders.append(pathlib.Path(temporary, f"whole-{number}"))
            writer_cases.make(number).write(folders[-1])
        whole = {folder.name: {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
                 for folder in folders if not any(path.is_symlink() for path in folder.iterdir())}
        names = [name for name, files in whole.items() if sum(map(len, files.values())) < DAMAGED_BYTES_MAX]
        beside = {}
        for base in corpus.glob("step-*"):
            shutil.copytree(base, pathlib.Path(temporary, base.name))
            beside |= {f"../{base.name}/{path.name}": path.read_bytes() for path in base.iterdir()}
        made, expected = [], []
        numbers = [*range(count), *(number for number in DISAGREED if number >= count)]
        for number in numbers:
            files = damaged(number, whole[DISAGREED.get(number, names[number % len(names)])])
            made.append(pathlib.Path(temporary, str(number)))
            made[-1].mkdir()
            for name, data in files.items():
                (made[-1] / name).write_bytes(data)
            expected.append(verify(MemoryDirectory({**files, **beside})))
        of_library = (answer for begin in range(0, len(made), BATCH)
                      for answer in run_corpus.tool_reports(ckpt, made[begin : begin + BATCH]))
        for number, report, said, (verdict, found, _) in zip(numbers, expected, reports(program, made)[0], of_library):
            here = report.verdict, {(violation.rule, violation.file) for violation in report.violations}
            there = said["verdict"], {(violation["rule"], violation["file"]) for violation in said["violations"]}
            library = verdict, {(rule, file) for _, rule, file in found}
            if not is_same(here, there, library):
                yield f"damage {number}: the second reader says {here}, the reader in Go {there}, the library {library}"


def main():
    parser = argparse.ArgumentParser()
    for option in ("--corpus", "--table", "--fixtures", "--source", "--work", "--ckpt"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    parser.add_argument("--damages", type=int, default=DAMAGES, metavar="N", help="so many checkpoints are damaged")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    reason = missing(options.work, options.source)
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    program = build(options.work, options.source)
    rows = list(run_corpus.read_table(options.table))
    folders = [options.corpus / row.entry for row in rows]
    answers, status = reports(program, folders)
    failed = [f"{row.entry}: {fault}" for row, folder, said in zip(rows, folders, answers)
              for fault in entry_faults(row, folder, said)]
    if status != 1:
        failed.append(f"exit status {status} of a corpus in which something is corrupt")
    failed += writer_faults(program)
    failed += chain_faults(program)
    failed += list_faults(program)
    failed += fingerprint_faults(program)
    failed += fixture_faults(program, options.fixtures)
    failed += damage_faults(program, options.ckpt, options.corpus, options.damages)
    print("\n".join(failed))
    print(f"{len(rows)} entries, {len(WRITER_CASES)} checkpoints of the writer and {options.damages} damaged ones, "
          f"{len(failed)} differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
