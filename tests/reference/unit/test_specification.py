# SPDX-License-Identifier: Apache-2.0
"""The reader against the text: its table of rules, and the worked example."""

import pathlib
import re
import unittest

from sealpoint_reference import rules
from sealpoint_reference.directory import MemoryDirectory
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.verify import verify

SPEC = pathlib.Path(__file__).resolve().parents[3] / "spec"


def dumped_files():
    """The files that container.md shows in hex."""
    text = (SPEC / "container.md").read_text()
    for name, dump in re.findall(r"^```hex (\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        data, line = b"", b""
        for row in dump.splitlines():
            if row == "*":
                continue
            at, *digits = row.split()
            while len(data) < int(at, 16):
                data += line
            line = bytes.fromhex("".join(digits))
            data += line
        yield name, data


class Specification(unittest.TestCase):
    def test_each_rule_has_the_code_of_its_row(self):
        rows = re.findall(r"^\| (R-\w{3}-\d\d) \| (\w+) \|", (SPEC / "reader-rules.md").read_text(), re.MULTILINE)
        self.assertEqual({rule: code for rule, code in rows if code != "Ok"}, rules.CODES)

    def test_reads_the_worked_example(self):
        files = dict(dumped_files())
        self.assertEqual(len(files), 3)
        self.assertEqual(verify(MemoryDirectory(files)).violations, [])
        checkpoint = Checkpoint(MemoryDirectory(files))
        self.assertEqual(checkpoint.tensor("w").hex(), "0000803f000000c00000003f00004040")
        self.assertEqual(checkpoint.box("w", (0, 1), (2, 1)).hex(), "000000c000004040")
        self.assertEqual(checkpoint.object("rng"), b"seed=42")


if __name__ == "__main__":
    unittest.main()
