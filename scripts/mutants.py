#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes each protective step out, one at a time, and fails where no test sees it (tests/mutants/README.md).

  scripts/mutants.py [--quick] [--since REVISION] [--sample N] [--list] [--build-only] [-j N] [PATTERN...]
  scripts/mutants.py --kinds|--programs [--bound SECONDS] [the same]

  --quick       what reaches the storage, compares of digests, and the catalogue written by hand
  --since R     only those in files that changed since a revision
  --sample N    N of those that are chosen otherwise, the same ones each time
  --list        only lists the mutants
  --build-only  only builds what the run needs
  --kinds       which kinds of test kill each mutant: the tests of each kind that reach it, until one of the kind fails
  --programs    the same for each test program
  --bound       seconds of a processor that the tests of a kind may take for one mutant; 1 if not given, and ten times as
                much where no unit test kills
  PATTERN       only those whose name holds one of these texts
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
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
                 "unit_series", "unit_saver", "unit_device", "unit_pipeline", "unit_repack", "unit_compare",
                 "unit_tensor_stream", "unit_promote", "crash_directory_sync", "crash_promote", "crash_repack", "fault_objects",
                 "fault_system_calls"]


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


def build(quick, jobs):
    log = BUILD.with_suffix(".configure.log")
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as out:
        nightly = f"-DSEALPOINT_NIGHTLY_TESTS={'OFF' if quick else 'ON'}"
        subprocess.run(["cmake", "--preset", "mutants", nightly], cwd=ROOT, stdout=out, stderr=out, check=True)
    targets = QUICK_TARGETS if quick else TARGETS
    command = ["cmake", "--build", str(BUILD), "-j", str(jobs), "--target", *targets]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL if quick else None)


def differs_only_where_noted(mutant):
    """Whether nothing but the outcome of a condition without effects is changed, which tests have noted."""
    return mutant.kind in ("edge", "ignored", "anyway") or (
        mutant.kind in ("guard", "pass") and EFFECT.search(mutant.text) is None)


def tests_by_note(everything):
    """For each note that a test has left: the tests of each program that left it."""
    found = {}
    for program in everything:
        for test, noted in program.tests.items():
            for name in noted[1]:
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


def time_limit(program, tests):
    return max(programs.FLOOR_SECONDS, 5 * sum(program.tests[test][0] for test in tests))


def check(mutant, noted_by, is_equivalent):
    """("killed" and by whom, "alive", or "unreached"), seconds. Equivalent: no slow tests are spent on it."""
    started = time.monotonic()
    runs = [(program, tests) for is_slow, program, tests in stages_of(mutant, noted_by)
            if not (is_slow and is_equivalent)]
    for program, tests in runs:
        if (status := program.run(tests, time_limit(program, tests), SEALPOINT_MUTANT=mutant.name)[0]) != 0:
            how = " (too long)" if status is None else ""
            return f"killed   {program.name}{how}", time.monotonic() - started
    return "alive" if runs else "unreached", time.monotonic() - started


def changed_since(revision):
    command = ["git", "diff", "--name-only", revision]
    return set(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines())


def choose(mutants, options):
    if options.quick:
        mutants = [mutant for mutant in mutants if is_quick(mutant)]
    if options.since:
        changed = changed_since(options.since)
        mutants = [mutant for mutant in mutants if mutant.path in changed]
    if options.patterns:
        mutants = [mutant for mutant in mutants if any(pattern in mutant.name for pattern in options.patterns)]
    if options.sample:
        mutants = random.Random(1).sample(mutants, min(options.sample, len(mutants)))
    return mutants


def keep_results(row, title, options, exact, counts):
    """For scripts/testing_table.py."""
    folder = os.environ.get("SEALPOINT_RESULTS")
    if not folder or options.patterns or options.since:
        return
    flags = [f"--{flag}" for flag in ("quick", "kinds", "programs") if getattr(options, flag)]
    flags += ["--sample", str(options.sample)] if options.sample else []
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    run = {"row": row, "title": title, "command": " ".join(["scripts/mutants.py", *flags]), "exact": exact, "counts": counts}
    (pathlib.Path(folder) / f"{row}.json").write_text(json.dumps(run) + "\n")


def report(counts, options, seconds):
    print(f"{counts['mutants']} mutants: {counts['killed']} killed, {counts['equivalent']} equivalent, "
          f"{counts['alive']} alive; {seconds:.0f} s")
    title = "Protective steps removed" + (", the quick part" if options.quick else "")
    if not options.sample:
        keep_results("mutants-quick" if options.quick else "mutants", title, options, True, counts)


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


def run_matrix(chosen, everything, options):
    """Prints which kinds, or programs, kill each mutant, and what each kind does in sum."""
    import kill_matrix  # by night only

    group_of = kill_matrix.name_of if options.programs else kill_matrix.kind_of
    noted_by, verdicts = tests_by_note(everything), []

    def judge_one(mutant):
        runs = [(program, tests) for _, program, tests in stages_of(mutant, noted_by)]
        return kill_matrix.judge(mutant, runs, group_of, options.bound, time_limit)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for mutant, found in zip(chosen, pool.map(judge_one, chosen)):
            verdicts.append(found)
            print(f"{mutant.name}: {kill_matrix.show(found)}", flush=True)
    part = f"{len(chosen)} of {'the quick part' if options.quick else 'all'}"
    for group, counts in kill_matrix.summarise(everything, verdicts, group_of).items():
        print(f"{group}: " + "; ".join(f"{what}: {count:,}" for what, count in counts.items()))
        row = f"kills-{'quick' if options.quick else 'all'}-{group.replace('.', '-').replace('_', '-')}"
        keep_results(row, f"Mutants ({part}) killed by {group} tests", options, False, counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--since")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--bound", type=float, default=1)
    parser.add_argument("--sample", type=int)
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    mutants = generate.generate()
    chosen = choose(mutants, options)
    if options.list:
        for mutant in chosen:
            print(f"{mutant.kind:9} {mutant.name} | {mutant.path}:{mutant.line} | {mutant.text}")
        return 0
    if not chosen:
        print("No such mutant.")
        return 0 if options.since else 1
    equivalent = read_equivalent()
    if unknown := set(equivalent) - {mutant.name for mutant in mutants}:
        print(f"equivalent.txt: no such mutant: {sorted(unknown)}")
        return 1
    started = time.monotonic()
    with_all_tests = options.kinds or options.programs or not options.quick
    build(not with_all_tests, options.jobs)
    if options.build_only:
        return 0
    everything = programs.find_programs(BUILD)
    if not with_all_tests:
        everything = [program for program in everything if program.name.replace(".", "_") in QUICK_TARGETS]
    if failed := programs.record_programs(everything, BUILD / "reached.json", options.jobs):
        print("These fail although nothing is taken out:", *failed, sep="\n  ")
        return 1
    print(f"{sum(len(item.tests) for item in everything)} tests of {len(everything)} programs pass with nothing "
          f"taken out; {time.monotonic() - started:.0f} s", flush=True)
    if options.kinds or options.programs:
        run_matrix([mutant for mutant in chosen if mutant.name not in equivalent], everything, options)
        return 0
    counts, stale = run_all(chosen, equivalent, everything, options.jobs)
    print(*stale, sep="\n" if stale else "", end="\n" if stale else "")
    report(counts, options, time.monotonic() - started)
    return 1 if counts["alive"] or stale else 0


if __name__ == "__main__":
    sys.exit(main())
