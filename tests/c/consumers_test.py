#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that use libsealpoint_c.so: the examples in C, Rust and Go as their first lines say, and a program as it was
compiled against version 1 of the ABI, whose checkpoint the second reader reads.

Usage: consumers_test.py FOLDER_OF_THE_LIBRARY WORK_FOLDER [unittest arguments]
"""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES, WORK = None, None
PC = """Name: sealpoint-c
Description: the library in a build folder
Version: 0
Libs: -L{libraries} -lsealpoint_c
Cflags: -I{root}/include
"""


class ConsumersTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="c-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "sealpoint-c.pc").write_text(PC.format(libraries=LIBRARIES, root=ROOT))
        self.environment = dict(os.environ, PKG_CONFIG_PATH=str(self.folder), LD_LIBRARY_PATH=str(LIBRARIES),
                                GOCACHE=str(WORK / "go"), HOME=str(WORK), GOFLAGS="-mod=mod")
        if "RUSTUP_HOME" not in os.environ and "HOME" in os.environ:
            self.environment["RUSTUP_HOME"] = os.path.join(os.environ["HOME"], ".rustup")

    def run_line(self, line, status=0):
        done = subprocess.run(line, shell=True, cwd=self.folder, env=self.environment, text=True, capture_output=True,
                              timeout=200, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + (done.stderr if status else "")

    def make_checkpoint(self):
        self.run_line(f"gcc -std=c99 {ROOT}/tests/c/abi/program_1.c $(pkg-config --libs sealpoint-c) -o program_1")
        self.assertEqual("0 failures\n", self.run_line("./program_1 checkpoint"))

    def commands(self, example):
        """What the first lines of an example say, with its checkpoint and tensor replaced."""
        path = ROOT / "examples/c" / example
        shutil.copy(path, self.folder)
        lines = re.findall(r"^//   (.*)$", path.read_text(), re.M)
        return [line.replace("runs/a/step-000000000100-1f2e3d4c layers.0.weight", "checkpoint w") for line in lines]

    def run_example(self, example, tool):
        if shutil.which(tool) is None:
            self.skipTest(f"there is no {tool}")
        self.make_checkpoint()
        commands = self.commands(example)
        for line in commands[:-1]:
            self.run_line(line)
        output = self.run_line(commands[-1])
        self.assertRegex(output, r"w f32 \[2,? 3\]")
        wrong = self.run_line(commands[-1].replace("checkpoint w", "checkpoint v"), status=1)
        self.assertIn("NotFound", wrong)
        self.assertIn("tensor v", wrong)
        self.assertIn("R-DIR-01", self.run_line(commands[-1].replace("checkpoint w", "nowhere"), status=1))
        return output

    def test_c(self):
        output = self.run_example("list.c", "cc")
        self.assertIn("committed", output)
        self.assertIn(" 0 1 2", output)

    def test_rust(self):
        self.assertIn("[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]", self.run_example("list.rs", "rustc"))

    def test_go(self):
        self.assertIn("[0 1 2 3 4 5]", self.run_example("list.go", "go"))

    def test_the_document(self):
        text = (ROOT / "docs/guides/c.md").read_text()
        program, output = re.search(r"```c\n(.*?)```\n\n```text\n(.*?)```", text, re.S).groups()
        (self.folder / "program.c").write_text(program)
        line = re.search(r"^cc (.*)$", text, re.M)[0]
        self.run_line(f"{line} -Wall -Wextra -Wpedantic -Werror")
        self.assertEqual(output, self.run_line("./program"))
        self.assertIn("AlreadyExists", self.run_line("./program", status=1))

    def test_the_second_reader_reads_what_c_wrote(self):
        self.make_checkpoint()
        reader = f"PYTHONPATH={ROOT}/readers/reference {sys.executable} -B -m sealpoint_reference"
        self.run_line(f"{reader} verify checkpoint")
        self.run_line(f"{reader} cat checkpoint w > w")
        self.assertEqual(struct.pack("<6f", *range(6)), (self.folder / "w").read_bytes())
        self.assertEqual("seed", self.run_line(f"{reader} cat checkpoint rng --object"))


if __name__ == "__main__":
    LIBRARIES, WORK = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
