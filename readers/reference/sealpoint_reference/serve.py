# SPDX-License-Identifier: Apache-2.0
"""Checks checkpoints that come through a pipe, for comparing readers with each other.

A request on stdin: the number of files, 4 bytes; for each file the length of its name, 2 bytes, its name in UTF-8, the
length of its content, 4 bytes, and its content. A reply on stdout: its length, 4 bytes, and JSON with verdict,
violations (code, rule, file) and content: the digest of the raw bytes of each tensor and object, null where nothing is
committed. All lengths are little-endian. A bug of this reader ends the process with a traceback.

    python3 -m sealpoint_reference.serve
"""

import json
import struct
import sys

from .directory import MemoryDirectory
from .load import Checkpoint
from .verify import verify
from .xxh3 import digest


def _number(source, size):
    return int.from_bytes(_exactly(source, size), "little")


def _exactly(source, size):
    data = source.read(size)
    if len(data) != size:
        raise EOFError("a request that is cut off")
    return data


def read_request(source):
    """The files of one request, None at the end."""
    start = source.read(4)
    if not start:
        return None
    count = int.from_bytes(start + _exactly(source, 4 - len(start)), "little")
    files = {}
    for _ in range(count):
        name = _exactly(source, _number(source, 2)).decode("utf-8", "surrogateescape")
        files[name] = _exactly(source, _number(source, 4))
    return files


def check(files):
    directory = MemoryDirectory(files)
    report = verify(directory)
    content = None
    if report.verdict == "committed":
        checkpoint = Checkpoint(directory)
        content = {
            "tensors": {name: digest(checkpoint.tensor(name)).hex() for name in checkpoint.tensors},
            "objects": {name: digest(checkpoint.object(name)).hex() for name in checkpoint.objects},
        }
    violations = [{"code": v.code, "rule": v.rule, "file": v.file} for v in report.violations]
    return {"verdict": report.verdict, "violations": violations, "content": content}


def main():
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while (files := read_request(source)) is not None:
        reply = json.dumps(check(files)).encode()
        sink.write(struct.pack("<I", len(reply)) + reply)
        sink.flush()


if __name__ == "__main__":
    main()
