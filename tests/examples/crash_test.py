# SPDX-License-Identifier: Apache-2.0
"""Kills ranks of train_char_lm in every phase of a save, with and without --async, and looks at what is left.

Usage: crash_test.py MPIEXEC TRAIN_CHAR_LM CKPT [ForegroundTest|BackgroundTest ...]
"""
import itertools
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

STEPS = 3
KILLED_STEP = 2
SHARED_PHASES = ["preflight", "plan", "write blobs", "sync blobs", "agree", "verdict"]
TRAINING_PHASES = ["plan", "snapshot"]  # of a save with --async, on the thread that trains
RANK_ZEROS_PHASES = ["check blobs", "build index", "check index", "write index", "publish"]
RANKS = 4
MESH = "data=2,tensor=2"
OTHER_MESHES = {2: "data=1,tensor=2", 3: "data=3,tensor=1", 1: "data=1,tensor=1"}  # to resume on, by ranks

VALID = 0  # exit statuses of ckpt verify
UNCOMMITTED = 2
NO_FILE_OF_OURS = 4

mpiexec, trainer, ckpt = "", "", ""


def write_text(path):
    source = random.Random(1)
    words = ["".join(source.choices("abcdefghij", k=source.randint(1, 8))) for _ in range(200)]
    path.write_text(" ".join(source.choices(words, k=2000)))


def run(command):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=60, check=False
    )


def verdict(*arguments):
    return run([ckpt, "verify", *arguments]).returncode


def losses_in(output):
    """By step, as they were printed."""
    found = re.findall(r"^step +(\d+)  mean loss (\S+)$", output, re.MULTILINE)
    return {int(step): loss for step, loss in found}


def final_state_in(output):
    """The digest of all parameters and moments after the last step."""
    state, = re.findall(rf"^step +{STEPS}  state ([0-9a-f]{{16}})  done$", output, re.MULTILINE)
    return state


def states_in(output, what):
    """Step -> digest, in the lines that say so."""
    found = re.findall(rf"^step +(\d+)  state ([0-9a-f]{{16}})  {what}", output, re.MULTILINE)
    return {int(step): state for step, state in found}


class Training:
    """Runs the program on the same text, with the same small model."""

    def __init__(self, text):
        self.text = text

    def run(self, ranks, *arguments):
        mesh = MESH if ranks == RANKS else OTHER_MESHES[ranks]
        program = [trainer, "--text", self.text, "--steps", STEPS, "--mesh", mesh, "--hidden", 16, "--report-every", 1]
        return run([mpiexec, "-n", ranks, *program, *arguments])


class CrashCase(unittest.TestCase):
    """Trains, kills, and looks at what is left."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="sealpoint-crash-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        write_text(cls.folder / "text")
        cls.training = Training(cls.folder / "text")
        done = cls.training.run(RANKS, "--checkpoints", cls.folder / "foreground", "--save-every", 1)
        assert done.returncode == 0, done.stderr
        cls.expected = final_state_in(done.stdout)
        cls.expected_losses = losses_in(done.stdout)
        assert sorted(cls.expected_losses) == list(range(1, STEPS + 1)), done.stdout
        cls.saved_states = states_in(done.stdout, "saved")  # in the foreground
        assert sorted(cls.saved_states) == list(range(1, STEPS + 1)), done.stdout

    def setUp(self):
        self.series = self.folder / self.id().rpartition(".")[2]

    def train(self, ranks, *arguments, series=None):
        """Trains to the end and demands the losses and the state of the uninterrupted run."""
        done = self.training.run(ranks, "--checkpoints", series or self.series, "--save-every", 1, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(final_state_in(done.stdout), self.expected, done.stdout)
        self.assertEqual(losses_in(done.stdout).items() - self.expected_losses.items(), set())
        self.complaints = done.stderr
        return done.stdout

    def crash(self, phase, rank, mode):
        die = ["--die-at", KILLED_STEP, "--die-in", phase, "--die-rank", rank, *mode]
        done = self.training.run(RANKS, "--checkpoints", self.series, "--save-every", 1, *die)
        self.assertIn(f"rank {rank} dies by SIGKILL", done.stdout)
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stdout + done.stderr)
        self.assertNotIn("  done", done.stdout)
        return done.stdout

    def directory_of(self, step):
        found = list(self.series.glob(f"step-{step:012}-*"))
        self.assertLessEqual(len(found), 1)
        return found[0] if found else None

    def check_crash(self, phase, rank, next_ranks, mode=()):
        self.crash(phase, rank, mode)
        newest_step = 1
        if mode and phase in TRAINING_PHASES:  # the older one may be under way still
            older = self.directory_of(1)
            newest_step = 1 if older is not None and verdict(older) == VALID else 0
        else:
            self.assertEqual(verdict(self.directory_of(1)), VALID, "the older one")
        attempt = self.directory_of(KILLED_STEP)
        is_committed = attempt is not None and verdict(attempt) == VALID
        if phase == "verdict" and rank == 0:  # published just before
            self.assertTrue(is_committed)
        elif phase in RANK_ZEROS_PHASES + TRAINING_PHASES + ["preflight", "write blobs"]:
            self.assertFalse(is_committed)
        if attempt is not None and not is_committed:
            has_begun = any(attempt.glob("*.blob"))
            self.assertEqual(verdict(attempt), UNCOMMITTED if has_begun else NO_FILE_OF_OURS)
        newest_step = KILLED_STEP if is_committed else newest_step
        output = self.train(next_ranks, "--resume", *mode)
        if newest_step == 0:
            self.assertIn("nothing to resume from", output)
        else:
            resumed = states_in(output, f"resumed from step-{newest_step:012}-")
            self.assertEqual(resumed, {newest_step: self.saved_states[newest_step]}, output)
        self.assertEqual(verdict("--series", self.series), VALID)


class ForegroundTest(CrashCase):
    def test_run_without_crash(self):
        self.train(RANKS)
        for step in range(1, STEPS + 1):
            self.assertEqual(verdict(self.directory_of(step)), VALID)

    def test_failed_save_does_not_end_the_training(self):
        (self.folder / "file").write_text("")
        for mode in ([], ["--async"]):
            self.train(RANKS, *mode, series=self.folder / "file" / "series")
            self.assertEqual(self.complaints.count(" failed: Io"), STEPS, self.complaints)

    def test_a_text_that_repeats_is_learnt_with_the_same_bits_on_any_mesh(self):
        """What follows is certain, so that the best loss is 0; the worst is that of 256 equal chances, 5.5."""
        (self.folder / "alphabet").write_text("abcdefghijklmnopqrstuvwxyz" * 10)
        outputs = set()
        for mesh in ("data=1,tensor=1", "tensor=3,data=2", "data=5,tensor=1"):
            ranks = math.prod(int(size) for size in re.findall(r"\d+", mesh))
            done = run([mpiexec, "-n", ranks, trainer, "--text", self.folder / "alphabet", "--mesh", mesh, "--hidden", 64,
                        "--steps", 120, "--report-every", 40])
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs.add(done.stdout.split("\n", 1)[1])
        self.assertEqual(len(outputs), 1, outputs)
        losses = list(losses_in(outputs.pop()).values())
        self.assertLess(float(losses[-1]), 1, losses)

    def test_resume_of_an_empty_series_starts_at_the_beginning(self):
        self.assertIn("nothing to resume from", self.train(2, "--resume"))

    def test_resume_refuses_a_damaged_newest_checkpoint(self):
        self.train(1)
        blob = max(self.directory_of(STEPS).glob("*.blob"), key=lambda path: path.stat().st_size)
        blob.unlink()
        done = self.training.run(2, "--checkpoints", self.series, "--resume")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Incomplete: cannot resume: ", done.stderr)
        self.assertIn(blob.name, done.stderr)

    def test_resume_refuses_another_training(self):
        self.train(1)
        done = self.training.run(2, "--checkpoints", self.series, "--resume", "--seed", 2)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Mismatch: cannot resume: ", done.stderr)


class BackgroundTest(CrashCase):
    def test_saves_in_the_background(self):
        """What they store is what saves in the foreground store at the same step, and the training is the same."""
        output = self.train(RANKS, "--async")
        self.assertEqual(states_in(output, "saved"), self.saved_states)
        self.assertRegex(output, r"\nsaves blocked training for [\d.]+ s\n")
        for ranks, step in zip(OTHER_MESHES, range(STEPS, 0, -1)):
            resumed = states_in(self.train(ranks, "--resume"), "resumed from")
            self.assertEqual(resumed, {step: self.saved_states[step]})
            for directory in self.series.glob("step-*"):
                if int(directory.name.split("-")[1]) >= step:
                    shutil.rmtree(directory)


def add_crash_test(phase, rank, next_ranks, mode=()):
    def test(self):
        self.check_crash(phase, rank, next_ranks, mode)

    case = BackgroundTest if mode else ForegroundTest
    setattr(case, f"test_kill_rank_{rank}_in_{phase.replace(' ', '_')}", test)


def add_crash_tests():
    cases = [(phase, rank) for phase in SHARED_PHASES for rank in (0, RANKS - 1)]
    cases += [(phase, 0) for phase in RANK_ZEROS_PHASES]
    for (phase, rank), next_ranks in zip(cases, itertools.cycle(OTHER_MESHES)):
        add_crash_test(phase, rank, next_ranks)
    # Each phase once, alternating the rank.
    cases = list(zip(["snapshot", *SHARED_PHASES], itertools.cycle((RANKS - 1, 0))))
    cases += [("verdict", RANKS - 1)] + [(phase, 0) for phase in RANK_ZEROS_PHASES]
    for (phase, rank), next_ranks in zip(dict.fromkeys(cases), itertools.cycle(OTHER_MESHES)):
        add_crash_test(phase, rank, next_ranks, ["--async"])


if __name__ == "__main__":
    mpiexec, trainer, ckpt = (os.path.abspath(path) for path in sys.argv[1:4])
    add_crash_tests()
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
