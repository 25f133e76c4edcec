# SPDX-License-Identifier: Apache-2.0
"""Errors that strace injects into the ranks of a job: EIO of the n-th sync, once and for ever, and kills.

Usage: see system_job.py. Short form: every sync of a single process, one of each of three ranks. --all: every sync of
each rank.
"""
import random
import shutil

import system_job
from system_job import FAULTY_STEP, KILLED, NOTHING, VALID, count, run, save, tools, verify

RANKS = 3


def strace(fault, calls="fsync,fdatasync"):
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:{fault}"]


class StraceTest(system_job.SystemTest):
    def fail_sync(self, ranks, rank, number, persists):
        """EIO of one sync of one rank, or of all from there on; False if there are fewer."""
        series = self.new_series()
        outcome = save(series, FAULTY_STEP, ranks, {rank: strace(f"error=EIO:when={number}{'+' if persists else ''}")})
        self.assertEqual((outcome.status, len(outcome.saves)), (0, ranks), outcome.text)
        verdict = self.check_attempt(series, outcome)
        if outcome.success_was_told:
            self.assertEqual(set(outcome.codes), {"Ok"}, outcome.text)
            return False
        print(f"EIO of sync {number}{' and all later ones' if persists else ''} of rank {rank} of {ranks}: {outcome}")
        self.check_same_failure(outcome, ranks)
        reported = outcome.saves[0]
        if ranks > 1:
            self.assertEqual(reported["cause"], rank, outcome.text)
        self.assertIn("fsync", reported["message"])
        self.assertTrue(reported["path"].startswith(str(series)), outcome.text)
        if outcome.is_unknown:
            self.assertEqual(verdict, VALID, "nothing is removed")
            self.assertEqual(reported["rule"], "R-CMT-07")
        else:
            self.assertEqual(verdict, NOTHING)
            self.check_nothing_left(series)
        self.check_next_save(series, verdict)
        count("unknown" if outcome.is_unknown else "refused on all ranks")
        return True

    def fail_syncs(self, ranks, rank, persists):
        """Every sync until none fails any more. The last one is that behind the publication by rank 0."""
        numbers = range(1, 100)
        last = next(number for number in numbers if not self.fail_sync(ranks, rank, number, persists)) - 1
        self.assertGreaterEqual(last, 10 if rank == 0 else 2)

    def test_each_sync_of_a_single_process_once(self):
        """Later syncs succeed: the answer is the failure all the same."""
        self.fail_syncs(1, 0, False)

    def test_each_sync_of_a_single_process_for_ever(self):
        self.fail_syncs(1, 0, True)

    def test_syncs_of_each_rank(self):
        self.needs_mpi()
        if tools.all:
            for rank in range(RANKS):
                for persists in (False, True):
                    self.fail_syncs(RANKS, rank, persists)
            return
        for rank, number, persists in ((0, 5, False), (1, 1, False), (2, 2, True)):
            self.assertTrue(self.fail_sync(RANKS, rank, number, persists))

    def train(self, wrappers, *arguments):
        """Trains a small model on three ranks; what it complained of, and the digest of its state at the end."""
        command = [tools.mpiexec]
        for rank in range(RANKS):
            command += [":"] if rank else []
            command += ["-n", 1, *wrappers.get(rank, []), tools.train, "--text", self.folder / "text", "--steps", 3,
                        "--mesh", f"data={RANKS},tensor=1", "--hidden", 16, *arguments]
        done = run(command)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr, system_job.final_state_in(done.stdout)

    def test_a_training_goes_on_after_a_failed_sync(self):
        self.needs_mpi()
        if not tools.train:
            self.skipTest("the example was not built")
        (self.folder / "text").write_text("".join(random.Random(1).choices("abcdefgh ", k=9000)))
        _, expected = self.train({})
        for rank in range(RANKS) if tools.all else (1,):
            series = self.folder / f"training-{rank}"
            errors, state = self.train({rank: strace("error=EIO:when=2")}, "--checkpoints", series, "--save-every", 1)
            self.assertEqual(state, expected)
            self.assertEqual(errors.count(" failed: Io"), 1, errors)
            status, report = verify("--series", series)
            self.assertEqual((status, [item["step"] for item in report["reports"]]), (VALID, [3, 2]), report)
            print(f"training, EIO of sync 2 of rank {rank}: one save failed, two stand, the model is the same")
            count("trainings")

    def test_a_rank_that_is_killed_when_it_publishes(self):
        """The third link is the publication; two were tried out before."""
        ranks = RANKS if tools.mpiexec else 1
        series = self.new_series()
        outcome = save(series, FAULTY_STEP, ranks, {0: strace("signal=KILL:when=3", "linkat")})
        self.assertIn(outcome.status, KILLED, outcome.text)
        verdict = self.check_attempt(series, outcome)
        self.assertNotEqual(verdict, VALID)
        self.check_next_save(series, verdict)
        count("killed")


def cannot_run():
    if not shutil.which("strace"):
        return "no strace"
    if run([*strace("error=EIO:when=1"), "true"]).returncode != 0:
        return "strace may not trace here"
    return ""


if __name__ == "__main__":
    system_job.main("strace", "Failing syncs of ranks, by strace", cannot_run)
