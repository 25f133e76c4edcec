# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at each system call of a save that changes something, by each rank, and what is left.

Usage: see system_job.py. Short form: every call of a single process; of three ranks each fourteenth call of rank 0,
from the first on, and each fourth of rank r, from number r + 1 on. --all: every call of every rank, before and after it
takes effect.
"""
import system_job
from system_job import FAULTY_STEP, KILLED, UNCOMMITTED, VALID, call_faults, count, read_log, save, tools

RANKS = 3
FIRST_RANKS_STRIDE = 14


class KillTest(system_job.SystemTest):
    def trace(self, ranks, rank):
        """The calls of a save in which nothing goes wrong."""
        series = self.new_series()
        log = self.folder / "log"
        done = save(series, FAULTY_STEP, ranks, {rank: call_faults(series, "--log", log)})
        self.assertEqual(done.codes, ["Ok"] * ranks, done.text)
        calls = read_log(log)
        self.assertGreater(len(calls), 4, calls)
        return calls

    def kill(self, ranks, rank, number, how, call):
        series = self.new_series()
        fault = call_faults(series, "--at", number, "--do", how)
        outcome = save(series, FAULTY_STEP, ranks, {rank: fault})
        self.assertIn(outcome.status, KILLED, outcome.text)
        verdict = self.check_attempt(series, outcome)
        place = f"{how} at call {number} of rank {rank} of {ranks} ({call[0]} {call[1]})"
        print(f"{place}: {'committed' if verdict == VALID else 'not committed'}")
        self.check_next_save(series, verdict)
        count("committed" if verdict == VALID else "not committed")
        return verdict

    def kill_in_order(self, ranks, rank, cases, calls):
        """Nothing is committed before the publication; all is from then on. cases: (number of the call, how)."""
        published = calls.index(("linkat", "COMMIT")) + 1 if rank == 0 else None

        def check(case):
            number, how = case
            verdict = self.kill(ranks, rank, number, how, calls[number - 1])
            done = number if how == "kill-after" else number - 1
            if rank == 0:
                self.assertEqual(verdict == VALID, done >= published)

        self.check_all(check, cases)

    def test_a_single_process_at_each_call(self):
        calls = self.trace(1, 0)
        cases = [(number, "kill") for number in range(1, len(calls) + 1)] + [(len(calls), "kill-after")]
        if tools.all:
            cases += [(number, "kill-after") for number in range(1, len(calls))]
        self.kill_in_order(1, 0, cases, calls)

    def test_each_rank(self):
        self.needs_mpi()
        for rank in range(RANKS):
            calls = self.trace(RANKS, rank)
            numbers = range(1, len(calls) + 1)
            if tools.all:
                cases = [(number, how) for number in numbers for how in ("kill", "kill-after")]
            else:
                cases = [(number, "kill") for number in numbers[rank :: FIRST_RANKS_STRIDE if rank == 0 else 4]]
            self.kill_in_order(RANKS, rank, cases, calls)

    def test_before_and_after_the_publication_by_rank_0(self):
        self.needs_mpi()
        calls = self.trace(RANKS, 0)
        number = calls.index(("linkat", "COMMIT")) + 1
        self.kill_in_order(RANKS, 0, [(number, "kill"), (number, "kill-after")], calls)

    def test_what_a_killed_save_leaves_is_uncommitted(self):
        """An attempt with files has the verdict uncommitted, another one none."""
        calls = self.trace(1, 0)
        number = calls.index(("fsync", "blob")) + 1
        self.assertEqual(self.kill(1, 0, number, "kill", calls[number - 1]), UNCOMMITTED)


if __name__ == "__main__":
    system_job.main("kill", "SIGKILL at system calls of a save", system_job.can_trace)
