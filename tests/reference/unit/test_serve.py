# SPDX-License-Identifier: Apache-2.0
"""The process that checks checkpoints through a pipe."""

import json
import struct
import subprocess
import sys
import unittest

import encode
from sealpoint_reference.xxh3 import digest


def request(files):
    data = struct.pack("<I", len(files))
    for name, content in files.items():
        data += struct.pack("<H", len(name)) + name.encode() + struct.pack("<I", len(content)) + content
    return data


def ask(data):
    done = subprocess.run([sys.executable, "-m", "sealpoint_reference.serve"], input=data, capture_output=True,
                          check=False)
    replies, at = [], 0
    while at < len(done.stdout):
        size, = struct.unpack_from("<I", done.stdout, at)
        replies.append(json.loads(done.stdout[at + 4:at + 4 + size]))
        at += 4 + size
    return done.returncode, replies


class Serve(unittest.TestCase):
    def setUp(self):
        tensor = encode.Tensor(b"w", (2,), [encode.Shard(0, (0,), (2,), b"ab")], grid=([], [0], None, None))
        self.files = encode.checkpoint([tensor], [encode.Object(b"o", b"xyz")])

    def test_answers_each_request(self):
        blob = "01" * 16 + ".blob"
        status, replies = ask(request(self.files) + request({}) + request({**self.files, blob: b""}))
        self.assertEqual(status, 0)
        self.assertEqual(replies, [
            {"verdict": "committed", "violations": [],
             "content": {"tensors": {"w": digest(b"ab").hex()}, "objects": {"o": digest(b"xyz").hex()}}},
            {"verdict": "unreadable", "violations": [{"code": "NotACheckpoint", "rule": "R-DIR-05", "file": ""}],
             "content": None},
            {"verdict": "incomplete", "violations": [{"code": "Incomplete", "rule": "R-BLB-01", "file": blob}],
             "content": None}])

    def test_a_request_that_is_cut_off_ends_it_with_an_error(self):
        status, replies = ask(request({}) + request(self.files)[:-1])
        self.assertNotEqual(status, 0)
        self.assertEqual(len(replies), 1)


if __name__ == "__main__":
    unittest.main()
