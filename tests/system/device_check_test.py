# SPDX-License-Identifier: Apache-2.0
"""scripts/device_check.sh without a GPU: over a driver library of ours, and with programs that only print.

Usage: device_check_test.py SCRIPT BUILD_FOLDER FOLDER_OF_LIBCUDA [unittest arguments]
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

script, build, driver_folder = "", "", ""
SANITIZER = """#!/bin/bash
tool=$2
while [[ $1 == --* ]]; do shift 2; done  # options, of a value each
echo "$tool $(basename "$1") $2" >>"$SANITIZED"
"$@" || exit
[ "$tool" != racecheck ] || { echo "========= RACECHECK SUMMARY: 1 hazard displayed"; exit 86; }
echo "========= ERROR SUMMARY: 0 errors"
"""
PRINTS = {
    "cuda_device": "echo '[==========] Running 9 tests'; echo '[  PASSED  ] 9 tests.'",
    "cuda_load": "echo \"$(dirname x)/file.cc:12: Skipped\"; echo 'no GPUDirect Storage: x'; echo '[  PASSED  ] 2 tests.'; "
                 "echo '[  SKIPPED ] 1 test, listed below:'",
    "cuda_prototypes": "echo '[  FAILED  ] Prototypes.Differ (0 ms)'; echo '[  FAILED  ] Prototypes.Differ'; exit 1",
    "cuda_stall_rate": "echo 'pinned copy 20.0 ms, stall 20.4 ms'; "
                       "echo 'stall of a save in the background: 1.021 of a pinned copy'; sleep 60",
    "cuda_rate": "echo 'copies in pieces: 1.010 of a plain copy, last 50.1 GB/s'; "
                 "echo 'digests of 4 MiB: 0.250 of a plain copy, last 200.0 GB/s'",
    "cuda_load_rate": "echo 'load to the device: 0.930 of the slower of link and storage'; "
                      "echo 'load to the device with digests there: 0.910 of the slower of link and storage'",
    "cuda_save": "echo '[  PASSED  ] 2 tests.'",
}


def run(folder, **environment):
    return subprocess.run([folder / "device_check.sh", "run"], capture_output=True, text=True, timeout=240, check=False,
                          env={**os.environ, **environment})


def rows(done):
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in done.stdout.splitlines()
             if line.startswith("| ")]
    return {cell[0]: cell[1:] for cell in cells}


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sealpoint-device-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.check = self.folder / "check"


class PrintedTest(Base):
    """The script's own work, with programs that only print."""

    def setUp(self):
        super().setUp()
        (self.check / "programs").mkdir(parents=True)
        shutil.copy(script, self.check / "device_check.sh")
        (self.check / "manifest").write_text("commit: abc\n")
        for name, command in PRINTS.items():
            self.put(name, command)

    def put(self, name, command):
        program = self.check / "programs" / name
        program.write_text(f"#!/bin/bash\n{command}\n")
        program.chmod(0o755)

    def test_outcomes_and_figures_are_in_the_table_and_a_time_out_loses_nothing(self):
        done = run(self.check, DEVICE_CHECK_STEP_SECONDS="2", PATH="/usr/bin:/bin")
        found = rows(done)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(found["device"][0], "passed")
        self.assertIn("2 tests passed, 1 skipped (no GPUDirect Storage: x)", found["load"][1])
        self.assertEqual(found["prototypes"], ["FAILED", "exit status 1; failed: Prototypes.Differ"])
        self.assertEqual(found["stall"], ["TIMED OUT", "after 2 s"])
        self.assertEqual(found["stall of a background save ÷ one pinned copy"], ["1.021", "≤ 1.05"])
        self.assertEqual(found["digest kernel ÷ link, rates"], ["4.00", "≥ 2"])
        self.assertEqual(found["load ÷ min(link, storage), rates"], ["0.930", "≥ 0.9"])
        self.assertEqual(found["the same, digests compared on the device"][0], "0.910")
        self.assertEqual(found["save"][0], "passed")
        for tool in ("memcheck", "racecheck", "synccheck"):
            self.assertEqual(found[tool][0], "skipped")
            self.assertIn("compute-sanitizer is neither in PATH nor", found[tool][1])
        self.assertEqual((self.check / "results" / "table.md").read_text(), done.stdout)
        self.assertEqual([entry for entry in (self.check / "results").iterdir() if entry.is_dir()], [])

    def test_when_the_whole_time_is_over_the_rest_is_not_run(self):
        done = run(self.check, DEVICE_CHECK_SECONDS="0")
        found = rows(done)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(found["device"], ["not run", "0 s are over"])
        self.assertEqual(found["digest kernel ÷ link, rates"][0], "not measured")

    def test_a_program_that_was_not_carried_is_named(self):
        self.put("cuda_prototypes", "true")
        self.put("cuda_stall_rate", "true")
        (self.check / "programs" / "cuda_rate").unlink()
        done = run(self.check, PATH="/usr/bin:/bin")
        self.assertEqual(rows(done)["rate"], ["skipped", "cuda_rate was not carried"])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_programs_that_do_not_start_are_named(self):
        self.put("cuda_device", "echo 'libother.so.1: cannot open shared object file' >&2; exit 127")
        done = run(self.check)
        self.assertEqual(done.returncode, 1)
        self.assertIn("programs do not start here", done.stderr)
        self.assertIn("libother.so.1: cannot open", done.stderr)

    def test_an_older_libc_is_replaced_by_the_carried_one(self):
        old = "echo \"x: version \\`GLIBC_2.36' not found\" >&2; exit 1"
        commands = {name: command for name, command in PRINTS.items() if name != "cuda_stall_rate"}
        for name in commands:
            self.put(name, old)
        (self.check / "lib").mkdir()
        loader = self.check / "lib" / "loader"
        loader.write_text("#!/bin/bash\ncase $3 in\n" + "".join(
            f"*/{name}) {command};;\n" for name, command in commands.items()) + "esac\n")
        loader.chmod(0o755)
        self.put("cuda_stall_rate", "true")
        done = run(self.check, PATH="/usr/bin:/bin")
        self.assertEqual(rows(done)["device"][0], "passed", done.stdout + done.stderr)
        self.assertEqual(rows(done)["save"][0], "passed", done.stdout)
        self.assertIn("glibc of the build", done.stdout)

    def test_a_folder_without_programs_is_refused(self):
        shutil.rmtree(self.check / "programs")
        done = run(self.check)
        self.assertEqual((done.returncode, "has no programs" in done.stderr), (64, True))


class GatheredTest(Base):
    """With the real programs of the build folder."""

    def setUp(self):
        super().setUp()
        self.gathered = subprocess.run([script, "gather", build, self.check], capture_output=True, text=True, check=True)

    def test_without_a_device_it_says_so(self):
        (self.folder / "libcuda.so.1").write_text("")  # cannot be loaded
        done = run(self.check, LD_LIBRARY_PATH=str(self.folder))
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertIn("skipped: CUDA device 0 is not available: ", done.stdout)
        self.assertIn("glibc: GLIBC_2.", self.gathered.stdout)
        # The C library that was carried starts programs, too.
        done = run(self.check, LD_LIBRARY_PATH=str(self.folder), DEVICE_CHECK_CARRIED_LIBC="1")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)

    def test_over_our_own_driver_every_step_runs(self):
        sanitizer, sanitized = self.check / "compute-sanitizer" / "compute-sanitizer", self.folder / "sanitized"
        sanitizer.parent.mkdir()
        sanitizer.write_text(SANITIZER)
        sanitizer.chmod(0o755)
        # Large cases are slow on the host; what is measured on it means nothing.
        done = run(self.check, LD_LIBRARY_PATH=driver_folder, SEALPOINT_CUDA_RATE_MIB="8", GTEST_FILTER="-*ManyBatches",
                   SANITIZED=str(sanitized), PATH="/usr/bin:/bin")
        found = rows(done)
        for name in ("device", "load"):
            self.assertEqual(found[name][0], "passed", f"{name}: {done.stdout}{done.stderr}")
        carried = (self.check / "programs" / "cuda_save").exists()  # not without nvcc
        self.assertEqual(found["save"][0], "passed" if carried else "skipped")
        for name in ("stall of a background save ÷ one pinned copy", "digest kernel ÷ link, rates",
                     "load ÷ min(link, storage), rates", "the same, digests compared on the device"):
            self.assertGreater(float(found[name][0]), 0, done.stdout)
        self.assertEqual(found["memcheck-cuda_load"][0], "passed")
        self.assertEqual(found["racecheck-cuda_load"], ["FAILED", found["racecheck-cuda_load"][1]])
        self.assertIn("exit status 86", found["racecheck-cuda_load"][1])
        lines = sanitized.read_text().splitlines()
        self.assertEqual(len(lines), 9 if carried else 6)
        self.assertTrue(all("--gtest_filter=-*ManyBatches*" in line for line in lines), lines)
        self.assertEqual(done.returncode, 1, "a hazard was found")


if __name__ == "__main__":
    script, build, driver_folder = (os.path.abspath(path) for path in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
