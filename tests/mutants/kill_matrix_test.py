#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of what says which kinds of test kill which mutants."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import mutants  # noqa: E402
import generate  # noqa: E402
import kill_matrix  # noqa: E402
import programs  # noqa: E402


class StubProgram(programs.Program):
    """Tests that take a second each; those of `killers` fail if the mutant is out."""

    def __init__(self, name, tests, killers=(), mutant="m"):
        super().__init__(name, None, [], {})
        self.tests = {test: (1.0, [mutant], 1.0) for test in tests}
        self.killers, self.runs = killers, []

    def run(self, tests, seconds, processor_seconds=0, **variables):
        self.runs.append((tests, variables["SEALPOINT_MUTANT"]))
        return int(any(test in self.killers for test in tests)), 1.0


class KillMatrixTest(unittest.TestCase):
    mutant = generate.Mutant("m", "step", "lib/format/sample.cc", 1, "Check()")

    def judge(self, *everything, bound=10, group_of=kill_matrix.kind_of):
        runs = [(program, tests) for _, program, tests in mutants.stages_of(self.mutant, mutants.tests_by_note(everything))]
        return kill_matrix.judge(self.mutant, runs, group_of, bound, mutants.time_limit)

    def test_each_kind_is_run_although_another_has_killed(self):
        everything = [StubProgram(f"{kind}.a", ["A.a", "A.b"], ["A.b"]) for kind in programs.KINDS]
        self.assertEqual(self.judge(*everything), {kind: "killed" for kind in programs.KINDS})
        self.assertEqual([program.runs for program in everything], [[(["A.a", "A.b"], "m")]] * len(everything))

    def test_a_kill_is_credited_to_the_kind_whose_test_failed_and_to_no_other(self):
        everything = [StubProgram("unit.a", ["A.a"]), StubProgram("crash.b", ["B.b"]),
                      StubProgram("crash.c", ["C.c"], ["C.c"]), StubProgram("fault.d", ["D.d"], ["D.d"], "another")]
        self.assertEqual(self.judge(*everything), {"crash": "killed", "unit": "passed"})
        self.assertEqual(self.judge(*everything, group_of=kill_matrix.name_of),
                         {"crash.b": "passed", "crash.c": "killed", "unit.a": "passed"})

    def test_a_kind_ends_with_its_first_failure(self):
        everything = [StubProgram("crash.a", ["A.a"], ["A.a"]), StubProgram("crash.b", ["B.b"], ["B.b"])]
        self.judge(*everything)
        self.assertEqual(sum(len(program.runs) for program in everything), 1)

    def test_tests_beyond_the_bound_of_a_kind_are_not_run_and_this_is_said(self):
        crash = StubProgram("crash.a", ["A.a", "A.b", "A.c"], ["A.c"])
        others = [StubProgram("unit.a", ["A.a"], ["A.a"]), StubProgram("fault.a", ["A.a"], ["A.a"])]
        self.assertEqual(self.judge(crash, *others, bound=2), {"crash": "cut off", "fault": "killed", "unit": "killed"})
        self.assertEqual(crash.runs, [(["A.a", "A.b"], "m")])
        self.assertEqual(self.judge(crash, *others, bound=3)["crash"], "killed")

    def test_the_bound_is_ten_times_as_much_where_no_unit_test_kills(self):
        slow, slower = [StubProgram(f"{kind}.a", [f"A.{test:02}" for test in range(tests)], [f"A.{tests - 1:02}"])
                        for kind, tests in (("crash", 20), ("fault", 21))]
        unit = StubProgram("unit.a", ["A.a"])
        self.assertEqual(self.judge(slow, slower, unit, bound=2), {"crash": "killed", "fault": "cut off", "unit": "passed"})
        unit = StubProgram("unit.a", ["A.a"], ["A.a"])
        self.assertEqual(self.judge(slow, unit, bound=2), {"crash": "cut off", "unit": "killed"})

    def test_the_summary_counts_what_only_one_kind_kills(self):
        everything = [StubProgram("unit.a", ["A.a", "A.b"]), StubProgram("crash.a", ["A.a"]), StubProgram("fault.a", [])]
        verdicts = [{"unit": "killed", "crash": "killed"}, {"unit": "killed", "crash": "passed"}, {"crash": "cut off"}]
        summary = kill_matrix.summarise(everything, verdicts, kill_matrix.kind_of)
        rows = {kind: tuple(counts.values()) for kind, counts in summary.items()}
        self.assertEqual(rows, {"crash": (1, 1, 3, 1, 0, 1), "fault": (0, 0, 0, 0, 0, 0), "unit": (2, 2, 2, 2, 1, 0)})
        self.assertEqual(kill_matrix.show(verdicts[1]), "killed by unit; passed crash")


if __name__ == "__main__":
    unittest.main()
