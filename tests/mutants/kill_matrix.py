# SPDX-License-Identifier: Apache-2.0
"""Which kinds of test kill which mutant: of each kind the tests that reach the step are run until one fails."""

import collections

KILLED, PASSED, CUT = "killed", "passed", "cut off"  # CUT: some tests did not fit into the bound, the others passed


def kind_of(program):
    return program.name.split(".")[0]


def name_of(program):
    return program.name


def processor_seconds(program, tests):
    return sum(program.tests[test][2] for test in tests)


def quickest(program, tests, seconds):
    """As many of these tests, the quickest first, as take no more than these seconds of a processor."""
    chosen = []
    for test in sorted(tests, key=lambda test: program.tests[test][2]):
        seconds -= program.tests[test][2]
        if seconds < 0:
            break
        chosen.append(test)
    return [test for test in tests if test in chosen]


def judge_group(runs, mutant, bound, time_limit):
    """The verdict of the tests [(program, tests)] of one kind, of which those are run that fit into the bound."""
    verdict = PASSED
    for program, tests in runs:
        chosen = quickest(program, tests, bound)
        if len(chosen) < len(tests):
            verdict = CUT
        if not chosen:
            continue
        bound -= processor_seconds(program, chosen)
        if program.run(chosen, time_limit(program, chosen), SEALPOINT_MUTANT=mutant.name)[0] != 0:
            return KILLED
    return verdict


def judge(mutant, runs, group_of, bound, time_limit):
    """{kind: verdict} of each kind that has a test among the runs [(program, tests)], in their order.

    Where no unit test kills, the kinds that were cut off get ten times the bound: which kind kills what the others cannot
    is not to depend on the bound.
    """
    groups = {}
    for program, tests in runs:
        groups.setdefault(group_of(program), []).append((program, tests))
    found = {group: judge_group(groups[group], mutant, bound, time_limit) for group in sorted(groups)}
    if not any(group.startswith("unit") and verdict == KILLED for group, verdict in found.items()):
        for group in [group for group, verdict in found.items() if verdict == CUT]:
            found[group] = judge_group(groups[group], mutant, 10 * bound, time_limit)
    return found


def show(verdicts):
    """"killed by unit, fault; passed crash" of {kind: verdict}."""
    parts = []
    for verdict, words in (KILLED, "killed by"), (PASSED, "passed"), (CUT, "cut off"):
        if groups := [group for group, found in verdicts.items() if found == verdict]:
            parts.append(f"{words} {', '.join(groups)}")
    return "; ".join(parts) or "reached by none"


def summarise(everything, verdicts, group_of):
    """{kind: counts} over a list of what judge() found, with a kind for each program that there is."""
    counts = {group: collections.Counter() for group in sorted({group_of(program) for program in everything})}
    for program in everything:
        counts[group_of(program)]["tests"] += len(program.tests)
        counts[group_of(program)]["seconds"] += processor_seconds(program, program.tests)
    for found in verdicts:
        killers = [group for group, verdict in found.items() if verdict == KILLED]
        for group, verdict in found.items():
            counts[group]["reached"] += 1
            counts[group][verdict] += 1
            counts[group]["alone"] += killers == [group]
    return {group: {"tests": count["tests"], "processor seconds": round(count["seconds"]),
                    "mutants reached": count["reached"], "killed": count[KILLED], "killed by no other": count["alone"],
                    "cut off": count[CUT]}
            for group, count in counts.items()}
