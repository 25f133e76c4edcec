# SPDX-License-Identifier: Apache-2.0
"""sealpoint PATH: what a checkpoint holds; with --verify: whether it can be trusted.

sealpoint convert SRC DST and sealpoint ls PATH are for checkpoints of any format; each has --help.
"""

from __future__ import annotations

import argparse
import sys

import sealpoint
from sealpoint._sealpoint import printable
from sealpoint.convert._command import main as run_command

# As those of ckpt-verify.
_STATUS = {"committed": 0, "corrupt": 1, "uncommitted": 2, "unsupported": 3, "unreadable": 4, "incomplete": 5}


def _list(path: str) -> int:
    with sealpoint.open(path) as checkpoint:
        step = "no step" if checkpoint.step is None else f"step {checkpoint.step}"
        print(f"{printable(checkpoint.path)}: {step}, {checkpoint.created:%Y-%m-%d %H:%M:%S} UTC")
        for tensor in checkpoint.values():
            shape = "x".join(str(extent) for extent in tensor.shape) or "scalar"
            print(f"{tensor.nbytes:15,}  {tensor.dtype_name:<12} {shape:<20} {printable(tensor.name)}")
        for name in checkpoint.objects:
            kind = printable(checkpoint.objects.media_type(name))
            print(f"{checkpoint.objects.size_bytes(name):15,}  {'object':<12} {kind:<20} {printable(name)}")
    return 0


def _verify(path: str, threads: int) -> int:
    report = sealpoint.verify(path, threads=threads, progress=True)
    for violation in report.violations:
        print(violation)
    print(f"{printable(report.path)}: {report.verdict}, {report.bytes_checked:,} bytes in {report.seconds:.2f} s")
    return _STATUS[report.verdict]


def main() -> int:
    """Runs the command line; returns its exit status."""
    if sys.argv[1:] and sys.argv[1] in ("convert", "ls"):
        return run_command(sys.argv[1], sys.argv[2:])
    parser = argparse.ArgumentParser(prog="sealpoint", description=__doc__)
    parser.add_argument("path", help="directory of a checkpoint")
    parser.add_argument("--verify", action="store_true", help="read and verify everything; exit statuses are ckpt-verify's")
    parser.add_argument("-j", "--threads", type=int, default=1, help="that verify (default: 1)")
    arguments = parser.parse_args()
    try:
        return _verify(arguments.path, arguments.threads) if arguments.verify else _list(arguments.path)
    except sealpoint.Error as error:
        print(error, file=sys.stderr)
        return 4
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough
        return 0


if __name__ == "__main__":
    sys.exit(main())
