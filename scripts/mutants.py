#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes each protective step out, one at a time, and fails where no test sees it (tests/mutants/README.md).

  scripts/mutants.py [--quick] [--list] [--build-only] [-j N] [PATTERN...]

  --quick       what reaches the storage, compares of digests, and the catalogue written by hand
  --list        only lists the mutants
  --build-only  only builds what the run needs
  PATTERN       only those whose name holds one of these texts
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/mutants"))
import generate  # noqa: E402
import programs  # noqa: E402

BUILD = ROOT / "build/mutants"
EQUIVALENT = ROOT / "tests/mutants/equivalent.txt"
STORAGE = re.compile(r"Sync|::fsync|Publish|::link|::rename|Close\(|::close|Durabl")
EFFECT = re.compile(r"(?<![\w>])::\w+\(|\b(?!Is|Has|Outcome)[A-Z]\w*\(|\b(insert|emplace|erase|exchange)\(|\+\+|--")
SLOW_SECONDS = 0.3  # tests that take longer are run behind all others
TARGETS = [f"sealpoint_tests_{kind}" for kind in programs.KINDS if kind != "background"]  # other runs of the same
QUICK_TARGETS = ["unit_digest", "unit_codec", "unit_interop", "unit_safetensors", "unit_storage", "unit_format",
                 "unit_metadata", "unit_container", "unit_load", "unit_verify", "unit_transfer", "unit_writer",
                 "unit_series", "unit_saver", "unit_device", "unit_pipeline", "unit_load_device",
                 "crash_directory_sync", "fault_system_calls"]


def is_quick(mutant):
    if mutant.kind == "catalogue":
        return True
    if mutant.kind in ("step", "ignored") or "::" in mutant.text:
        return STORAGE.search(mutant.text) is not None
    return mutant.kind in ("guard", "pass") and re.search(r"[dD]igest\(?|_digest", mutant.text) is not None \
        and re.search(r"[!=]=", mutant.text) is not None


def read_equivalent():
    rows = [line.split(" | ", 1) for line in EQUIVALENT.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, reason in rows}


def build(quick):
    log = BUILD.with_suffix(".configure.log")
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as out:
        subprocess.run(["cmake", "--preset", "mutants"], cwd=ROOT, stdout=out, stderr=out, check=True)
    targets = QUICK_TARGETS if quick else TARGETS
    command = ["cmake", "--build", str(BUILD), "-j", str(os.cpu_count()), "--target", *targets]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL if quick else None)


def differs_only_where_noted(mutant):
    """Whether nothing but the outcome of a condition without effects is changed, which tests have noted."""
    return mutant.kind in ("edge", "ignored", "anyway") or (
        mutant.kind in ("guard", "pass") and EFFECT.search(mutant.text) is None)


def tests_by_note(everything):
    """For each note that a test has left: the tests of each program that left it."""
    found = {}
    for program in everything:
        for test, (_, names) in program.tests.items():
            for name in names:
                found.setdefault(name, {}).setdefault(program, []).append(test)
    return found


def stages_of(mutant, noted_by):
    """[(is slow, program, tests)]: those to which the step made a difference, then all others that come to it."""
    differs, comes = noted_by.get(f"{mutant.name}!", {}), noted_by.get(mutant.name, {})
    noted, others, module = [], [], mutant.path.split("/")[1]
    for program, tests in comes.items():
        for runs, wanted in (noted, True), (others, False):
            chosen = [test for test in tests if (test in differs.get(program, ())) == wanted]
            for is_slow in False, True:
                if some := [test for test in chosen if (program.tests[test][0] > SLOW_SECONDS) == is_slow]:
                    seconds = sum(program.tests[test][0] for test in some)
                    runs.append(((is_slow, program.name != f"unit.{module}", seconds), program, some))
    for runs in noted, others:
        runs.sort(key=lambda run: run[0])
    chosen = noted if differs_only_where_noted(mutant) else noted + others
    return [(order[0], program, tests) for order, program, tests in chosen]


def check(mutant, noted_by, is_equivalent):
    """("killed" and by whom, "alive", or "unreached"), seconds. Equivalent: no slow tests are spent on it."""
    started = time.monotonic()
    runs = [(program, tests) for is_slow, program, tests in stages_of(mutant, noted_by)
            if not (is_slow and is_equivalent)]
    for program, tests in runs:
        limit = max(programs.FLOOR_SECONDS, 5 * sum(program.tests[test][0] for test in tests))
        if (status := program.run(tests, limit, SEALPOINT_MUTANT=mutant.name)) != 0:
            how = " (too long)" if status is None else ""
            return f"killed   {program.name}{how}", time.monotonic() - started
    return "alive" if runs else "unreached", time.monotonic() - started


def choose(mutants, options):
    if options.quick:
        mutants = [mutant for mutant in mutants if is_quick(mutant)]
    if options.patterns:
        mutants = [mutant for mutant in mutants if any(pattern in mutant.name for pattern in options.patterns)]
    return mutants


def report(counts, options, seconds):
    print(f"{counts['mutants']} mutants: {counts['killed']} killed, {counts['equivalent']} equivalent, "
          f"{counts['alive']} alive; {seconds:.0f} s")
    folder = os.environ.get("SEALPOINT_RESULTS")
    if not folder or options.patterns:
        return
    row = "mutants-quick" if options.quick else "mutants"
    title = "Protective steps taken out" + (", the quick part" if options.quick else "")
    run = {"row": row, "title": title, "command": "scripts/mutants.py" + (" --quick" if options.quick else ""),
           "exact": True, "counts": counts}
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    (pathlib.Path(folder) / f"{row}.json").write_text(json.dumps(run) + "\n")


def run_all(chosen, equivalent, everything, jobs):
    counts = {"mutants": len(chosen), "killed": 0, "equivalent": 0, "alive": 0}
    stale, noted_by = [], tests_by_note(everything)

    def judge_one(mutant):
        return check(mutant, noted_by, mutant.name in equivalent)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for mutant, (verdict, seconds) in zip(chosen, pool.map(judge_one, chosen)):
            is_killed = verdict.startswith("killed")
            if mutant.name in equivalent:
                counts["equivalent"] += 1
                if is_killed:
                    stale.append(f"equivalent.txt lists {mutant.name}, which {verdict.split()[1]} kills")
                verdict = f"equivalent ({verdict})"
            else:
                counts["killed" if is_killed else "alive"] += 1
                if not is_killed:
                    verdict = f"ALIVE    {verdict}"
            print(f"{verdict:34} {mutant.name}  [{seconds:.2f} s] {mutant.path}:{mutant.line}", flush=True)
    return counts, stale


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    mutants = generate.generate()
    chosen = choose(mutants, options)
    if options.list:
        for mutant in chosen:
            print(f"{mutant.kind:9} {mutant.name} | {mutant.path}:{mutant.line} | {mutant.text}")
        return 0
    equivalent = read_equivalent()
    if unknown := set(equivalent) - {mutant.name for mutant in mutants}:
        print(f"equivalent.txt: no such mutant: {sorted(unknown)}")
        return 1
    started = time.monotonic()
    build(options.quick)
    if options.build_only:
        return 0
    everything = programs.find_programs(BUILD)
    if options.quick:
        everything = [program for program in everything if program.name.replace(".", "_") in QUICK_TARGETS]
    if failed := programs.record_programs(everything, BUILD / "reached.json", options.jobs):
        print("These fail although nothing is taken out:", *failed, sep="\n  ")
        return 1
    print(f"{sum(len(one.tests) for one in everything)} tests of {len(everything)} programs pass with nothing "
          f"taken out; {time.monotonic() - started:.0f} s", flush=True)
    counts, stale = run_all(chosen, equivalent, everything, options.jobs)
    print(*stale, sep="\n" if stale else "", end="\n" if stale else "")
    report(counts, options, time.monotonic() - started)
    return 1 if counts["alive"] or stale else 0


if __name__ == "__main__":
    sys.exit(main())
