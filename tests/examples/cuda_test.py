# SPDX-License-Identifier: Apache-2.0
"""Runs train_char_lm --device cuda over a driver library of ours, which computes as the host does, and without one.

Usage: cuda_test.py MPIEXEC TRAIN_CHAR_LM FOLDER_OF_LIBCUDA [unittest arguments]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

STEPS = 4
SAVED_STEPS = [2, 4]

mpiexec, trainer, driver_folder = "", "", ""


def states_in(output, what):
    """Step -> fingerprint, in the lines that say so."""
    found = re.findall(rf"^step +(\d+)  state ([0-9a-f]{{16}})  {what}", output, re.MULTILINE)
    return {int(step): state for step, state in found}


class CudaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="sealpoint-cuda-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        (cls.folder / "corpus").mkdir()
        (cls.folder / "corpus" / "text").write_text("the quick brown fox jumps over the lazy dog " * 30)

        # A program that computes on the host starts where the driver cannot be loaded.
        cls.no_driver = cls.folder / "no-driver"
        cls.no_driver.mkdir()
        (cls.no_driver / "libcuda.so.1").write_text("")
        cls.series = cls.folder / "host"
        output, cls.expected = cls.train(2, "--mesh", "tensor=2", "--device", "host", libraries=cls.no_driver)
        cls.saved = states_in(output, "saved")
        assert sorted(cls.saved) == SAVED_STEPS, output

    def setUp(self):
        self.series = self.folder / self.id().rpartition(".")[2]

    @classmethod
    def run_trainer(cls, launcher, *arguments, libraries=None, devices=1, **more):
        command = [*launcher, trainer, "--corpus", cls.folder / "corpus", "--steps", STEPS,
                   "--embedding", 8, "--hidden0", 16, "--hidden1", 8, "--report-every", 1, *arguments]
        search = f"{libraries or driver_folder}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        environment = {**os.environ, "LD_LIBRARY_PATH": search, "FAKE_CUDA_DEVICES": str(devices), **more}
        return subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True,
                              timeout=60, check=False)

    @classmethod
    def train(cls, ranks, *arguments, series=None, libraries=None):
        """Returns what was printed, and the final state."""
        state = cls.folder / "state"
        state.unlink(missing_ok=True)
        done = cls.run_trainer([mpiexec, "-n", ranks], "--checkpoints", series or cls.series, "--save-every", 2,
                               "--final-state", state, *arguments, libraries=libraries, devices=2)
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("rank 0 computes on CUDA device 0" in done.stdout) == ("cuda" in arguments), done.stdout
        return done.stdout, state.read_bytes()

    def check_resume(self, *mode):
        """A run on devices, and one that goes on from its first checkpoint, do what the run on the host did."""
        mode = ["--device", "cuda", *mode]
        output, state = self.train(2, "--mesh", "tensor=2", *mode, series=self.series)
        self.assertEqual(states_in(output, "saved"), self.saved)
        self.assertEqual(state, self.expected)
        last, = self.series.glob(f"step-{STEPS:012}-*")
        shutil.rmtree(last)
        output, state = self.train(3, "--mesh", "data=3", "--resume", *mode, series=self.series)
        self.assertEqual(states_in(output, "resumed from"), {2: self.saved[2]})
        self.assertEqual(states_in(output, "saved"), {4: self.saved[4]})
        self.assertEqual(state, self.expected)

    def check_failure(self, message, **environment):
        done = self.run_trainer([], "--device", "cuda", **environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(message, done.stderr)

    def test_goes_on_from_a_save_in_the_foreground(self):
        self.check_resume()

    def test_goes_on_from_a_save_in_the_background(self):
        self.check_resume("--async")

    def test_without_a_driver_it_says_so(self):
        self.check_failure("train_char_lm: --device cuda: no CUDA driver: ", libraries=self.no_driver)

    def test_without_a_device_it_says_so(self):
        self.check_failure("train_char_lm: --device cuda: cuInit: CUDA_ERROR_NO_DEVICE", devices=0)

    def test_a_kernel_that_fails_ends_the_training(self):
        message = "CUDA device 0: char_lm_Embed: CUDA_ERROR_ILLEGAL_ADDRESS"
        self.check_failure(message, FAKE_CUDA_FAILURE="launch_kernel")


class WithoutCudaTest(unittest.TestCase):
    def test_the_program_says_that_it_was_built_without(self):
        done = subprocess.run([trainer, "--device", "cuda"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 64)
        self.assertIn("--device: this program was built without CUDA", done.stderr)


if __name__ == "__main__":
    mpiexec, trainer = (os.path.abspath(path) for path in sys.argv[1:3])
    driver_folder = sys.argv[3]
    tests = CudaTest if driver_folder else WithoutCudaTest
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(tests)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
