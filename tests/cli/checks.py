# SPDX-License-Identifier: Apache-2.0
"""Runs ckpt in a folder of checkpoints, and counts what is not as expected."""

import json
import subprocess


class Checks:
    def __init__(self, program, folder):
        self.program, self.folder, self.failures = program, folder, 0

    def expect(self, what, holds, details=""):
        if not holds:
            self.failures += 1
            print(f"FAILED: {what}: {details}")

    def run(self, *words, **options):
        return subprocess.run([self.program, *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False, **options)

    def json(self, *words):
        done = self.run(words[0], "--json", *words[1:])
        document = json.loads(done.stdout)
        self.expect(f"{words}: exit status", done.returncode == document["exit_status"] and document["version"] == 2, done)
        return document
