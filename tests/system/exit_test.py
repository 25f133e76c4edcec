# SPDX-License-Identifier: Apache-2.0
"""Processes that end, or fork, during a save in the background: nothing hangs, and what is left is whole or
not committed.

Usage: see system_job.py. Short form: some phases. --all: every phase, on one rank and on three.
"""
import pathlib
import signal

import system_job
from system_job import FAULTY_STEP, VALID, Outcome, count, lines_of_json, run, tools, verify

PHASES = ["preflight", "write blobs", "sync blobs", "agree", "verdict"]
PHASES_OF_RANK_0 = ["check blobs", "build index", "check index", "write index", "publish"]
OVER = "over"  # no phase: the thread in the background waits for a next save
WITHOUT_A_WORD = ["exit", "exit-all", "SIGTERM", "SIGABRT"]
RANKS = 3


class ExitTest(system_job.SystemTest):
    def probe(self, ranks, series, how, *phases):
        name = "system_exit_probe" if ranks == 1 else "system_exit_probe_mpi"
        launcher = [] if ranks == 1 else [tools.mpiexec, "-n", ranks]
        program = pathlib.Path(tools.probe).with_name(name)
        return run([*launcher, program, series, FAULTY_STEP, how, *phases])

    def check_end(self, case):
        ranks, how, phase = case
        series = self.new_series()
        done = self.probe(ranks, series, how, phase)
        text = done.stdout + done.stderr
        self.assertNotIn("Segmentation", text)
        if ranks == 1:
            wanted = -signal.Signals[how] if how.startswith("SIG") else 0
            self.assertEqual(done.returncode, wanted, text)
        verdict = self.check_attempt(series, Outcome(done))
        before_publication = phase != "verdict" and how.startswith("SIG")
        if before_publication:
            self.assertNotEqual(verdict, VALID, "it died before the publication")
        count("committed" if verdict == VALID else "not committed")
        self.check_next_save(series, verdict)

    def test_ends_without_a_word(self):
        phases = PHASES + PHASES_OF_RANK_0 if tools.all else ["write blobs", "sync blobs", "publish", "verdict"]
        cases = [(1, how, phase) for how in WITHOUT_A_WORD for phase in phases]
        if tools.mpiexec:
            some = PHASES if tools.all else ["sync blobs"]
            cases += [(RANKS, how, phase) for how in WITHOUT_A_WORD for phase in some]
        self.check_all(self.check_end, cases)

    def check_finalized(self, phase):
        series = self.new_series()
        done = self.probe(RANKS, series, "finalize", phase)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        outcome = Outcome(done)
        self.assertEqual(len(outcome.saves), RANKS, outcome.text)
        if phase != "verdict":
            self.assertEqual(set(outcome.codes), {"Comm"}, outcome.text)
        verdict = self.check_attempt(series, outcome)
        count("committed" if verdict == VALID else "not committed")
        self.check_next_save(series, verdict)

    def test_mpi_is_finalized_first(self):
        self.needs_mpi()
        self.check_all(self.check_finalized, PHASES if tools.all else ["write blobs", "agree", "verdict"])

    def check_forked(self, ranks):
        series = self.new_series()
        phases = PHASES + (PHASES_OF_RANK_0 if ranks == 1 else []) + [OVER]
        done = self.probe(ranks, series, "fork", *phases)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        outcomes = lines_of_json(done.stdout)
        self.assertEqual([outcome["code"] for outcome in outcomes], ["Ok"] * ranks * len(phases), done.stdout)
        status, report = verify("--series", series)
        self.assertEqual(status, VALID, report)
        verdicts = [item["verdict"] for item in report["reports"]]
        self.assertEqual(verdicts, ["committed"] * (1 + len(phases)))
        count("committed", len(phases))

    def test_a_child_ends_while_the_parent_saves(self):
        self.check_all(self.check_forked, [1, RANKS] if tools.mpiexec else [1])


if __name__ == "__main__":
    system_job.main("exit", "Processes that exit during a background save")
