# SPDX-License-Identifier: Apache-2.0
"""A rank that is stopped (SIGSTOP) during a save, against the deadline of the others.

Usage: see system_job.py. Short form: some phases. --all: each rank in each of its phases.
"""
import os
import pathlib
import signal
import subprocess
import time

import system_job
from system_job import FAULTY_STEP, NEXT_STEP, VALID, Outcome, count, job, tools, verify

RANKS = 3
DEADLINE_SECONDS = 0.8
TOLERANCE_SECONDS = 1.2  # for a loaded machine
SHARED_PHASES = ["preflight", "plan", "write blobs", "sync blobs", "agree", "verdict"]
PHASES_OF_RANK_0 = ["check blobs", "build index", "check index", "write index", "publish"]


def files_of(series, step):
    return {path: path.read_bytes() for path in series.glob(f"step-{step:012}-*/*")}


class StoppedRankTest(system_job.SystemTest):
    def start(self, series, rank, phase):
        """Starts a job of which one rank stops itself; the others stay after their answer. Returns the job and the rank's pid."""
        self.flag = self.folder / "end"
        self.flag.unlink(missing_ok=True)
        pid_file = self.folder / "pid"
        pid_file.unlink(missing_ok=True)
        stop = f"echo $PPID > {pid_file}.new; mv {pid_file}.new {pid_file}; kill -STOP $PPID"
        command = job(RANKS, ["--series", series, "--save", FAULTY_STEP, "--deadline-ms", int(DEADLINE_SECONDS * 1000),
                              "--at-phase", phase, "--on-rank", rank, "--run", stop, "--linger", self.flag])
        with open(self.folder / "output", "w") as output:
            launcher = subprocess.Popen([str(part) for part in command], stdout=output, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, launcher)
        self.wait_for(pid_file.exists, "the rank to stop")
        return launcher, int(pid_file.read_text())

    def end(self, launcher):
        """Ends everything that was started here, whatever went wrong."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                is_ours = os.fsencode(self.folder) in (process / "cmdline").read_bytes()
                if is_ours and int(process.name) != os.getpid():
                    os.kill(int(process.name), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                continue
        launcher.wait()

    def wait_for(self, is_so, what):
        until = time.monotonic() + 30
        while not is_so():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.01)

    def answers(self):
        return Outcome(subprocess.CompletedProcess([], 0, (self.folder / "output").read_text(), ""))

    def check(self, rank, phase):
        series = self.new_series()
        launcher, pid = self.start(series, rank, phase)
        self.wait_for(lambda: len(self.answers().saves) >= RANKS - 1, "the other ranks to answer")
        others = self.answers()
        for save in others.saves:
            self.assertNotEqual(save["rank"], rank)
            self.assertLess(save["seconds"], DEADLINE_SECONDS + TOLERANCE_SECONDS, save)
            if save["code"] == "Timeout":
                self.assertIn(f"save of step {FAULTY_STEP} to {series}, phase ", save["message"])
                self.assertEqual(save["cause"], save["rank"])
        may_be_committed = phase == "verdict"
        if not may_be_committed:
            self.assertEqual(others.codes, ["Timeout"] * (RANKS - 1), others.text)
            self.assertFalse(list(series.glob(f"step-{FAULTY_STEP:012}-*/COMMIT")))
        before = self.check_attempt(series, others)
        # A newer attempt, while the old one still has a rank that sleeps.
        self.check_next_save(series, before)
        newer = files_of(series, NEXT_STEP)
        self.assertGreater(len(newer), 2)
        os.kill(pid, signal.SIGCONT)
        self.wait_for(lambda: len(self.answers().saves) == RANKS, "the stopped rank to answer")
        late = next(save for save in self.answers().saves if save["rank"] == rank)
        self.assertEqual(files_of(series, NEXT_STEP), newer, "a late rank cannot touch a newer attempt")
        self.flag.touch()
        launcher.wait(30)
        print(f"rank {rank} stopped at the begin of {phase}: {others}, and it, woken: {late['code']}"
              f"{' (unknown)' if late['unknown'] else ''}")
        after = self.check_attempt(series, self.answers())
        if phase in ("preflight", "plan", "write blobs", "sync blobs", "agree"):
            self.assertNotEqual(after, VALID, "woken, it publishes nothing")
        self.assertTrue(others.is_unknown or others.success_was_told or after != VALID, others.text)
        self.assertEqual(verify("--series", series)[0], VALID)
        count("committed" if after == VALID else "not committed")

    def test_in_each_phase(self):
        self.needs_mpi()
        cases = [(1, "write blobs"), (2, "agree"), (0, "publish")]
        if tools.all:
            cases = [(rank, phase) for rank in range(RANKS) for phase in SHARED_PHASES]
            cases += [(0, phase) for phase in PHASES_OF_RANK_0]
        for rank, phase in cases:
            with self.subTest(rank=rank, phase=phase):
                self.check(rank, phase)


if __name__ == "__main__":
    system_job.main("stopped-rank", "Stopped ranks against the deadline")
