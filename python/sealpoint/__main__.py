# SPDX-License-Identifier: Apache-2.0
"""The command ``sealpoint``."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from typing import Any

import sealpoint
from sealpoint import _paths, _sealpoint
from sealpoint._command import STATUS_OF_VERDICT, Parser, run, threads_of, write_line
from sealpoint._promote import run_promote
from sealpoint._sealpoint import printable
from sealpoint.interop._command import COMMANDS

_HELP = """\
usage: sealpoint [--json] PATH                                  what a checkpoint of Sealpoint holds
       sealpoint verify [--level LEVEL] [-j N] [--json] PATH    whether it can be trusted, to the last byte
       sealpoint ls PATH                                        what a checkpoint of any known format holds
       sealpoint convert SRC DST                                one format into another
       sealpoint promote [--dry-run] LOCAL FINAL                what a training left on a local disk to its series
       sealpoint bench [--html FILE] PATH                       how it does on this storage, beside others
       sealpoint --version

Formats: Sealpoint, torch.distributed.checkpoint, Megatron, Hugging Face, safetensors, torch.save. Each command has
--help. `sealpoint --verify PATH` is `sealpoint verify PATH`. A path with the name of a command is ./ls, say.

exit status: 0 done; for a checkpoint 1 corrupt, 2 uncommitted, 3 unsupported, 4 not found or not readable,
5 incomplete, 6 converted but for what is named as left out; 64 wrong usage; 70 a bug; 74 standard output could not
be written; 130 interrupted by Ctrl-C; 143 and 129: a conversion that SIGTERM or SIGHUP ended, which leaves nothing
"""
_COMMANDS = ("verify", *COMMANDS, "promote", "bench")


class _MainParser(Parser):
    def format_help(self) -> str:
        return _HELP


def _list(path: str, as_json: bool) -> int:
    with sealpoint.open(path) as checkpoint:
        if as_json:
            write_line(json.dumps(_content(checkpoint)))
            return 0
        step = "no step" if checkpoint.step is None else f"step {checkpoint.step}"
        write_line(f"{printable(checkpoint.path)}: {step}, {checkpoint.created:%Y-%m-%d %H:%M:%S} UTC")
        for tensor in checkpoint.values():
            shape = "x".join(str(extent) for extent in tensor.shape) or "scalar"
            write_line(f"{tensor.nbytes:15,}  {tensor.dtype_name:<12} {shape:<20} {printable(tensor.name)}")
        for name in checkpoint.objects:
            kind = printable(checkpoint.objects.media_type(name))
            write_line(f"{checkpoint.objects.size_bytes(name):15,}  {'object':<12} {kind:<20} {printable(name)}")
    return 0


def _content(checkpoint: sealpoint.Checkpoint) -> dict[str, Any]:
    objects = checkpoint.objects
    return {
        "path": checkpoint.path,
        "step": checkpoint.step,
        "created": checkpoint.created.isoformat(),
        "attempt": checkpoint.attempt,
        "parent": checkpoint.parent,
        "sequence": checkpoint.sequence,
        "provenance": checkpoint.provenance,
        "tensors": [
            {"name": one.name, "dtype": one.dtype_name, "shape": list(one.shape), "bytes": one.nbytes}
            for one in checkpoint.values()
        ],
        "objects": [
            {"name": name, "media_type": objects.media_type(name), "bytes": objects.size_bytes(name)} for name in objects
        ],
    }


def _error_as_json(error: Exception) -> dict[str, Any]:
    """The parts that are known, as ckpt-verify has them."""
    names = ("code", "message", "rule", "path", "offset", "tensor", "object")
    return {name: value for name in names if (value := getattr(error, name)) is not None}


def _verify(arguments: argparse.Namespace) -> int:
    report = sealpoint.verify(arguments.path, arguments.level, threads=arguments.threads, progress=not arguments.json)
    status = STATUS_OF_VERDICT[report.verdict]
    if arguments.json:
        names = ("path", "verdict", "level", "step", "attempt", "sequence", "tensor_count", "object_count", "blob_count",
                 "chunk_count", "bytes_checked", "seconds", "violation_count", "notes")  # fmt: skip
        violations = [_error_as_json(error) for error in report.violations]
        document = {name: getattr(report, name) for name in names}
        write_line(json.dumps({**document, "violations": violations, "exit_status": status}))
        return status
    for violation in report.violations:
        write_line(str(violation))
    write_line(f"{printable(report.path)}: {report.verdict}, {report.bytes_checked:,} bytes in {report.seconds:.2f} s")
    return status


def _run_verify(arguments: list[str]) -> int:
    parser = Parser(prog="sealpoint verify", description="Whether a checkpoint of Sealpoint can be trusted.")
    parser.add_argument("path", metavar="PATH", help="its directory")
    parser.add_argument(
        "--level",
        choices=("files", "structure", "full"),
        default="full",
        help="files: all are there, of the right size; structure: and headers and tables; full: and every byte (default)",
    )
    parser.add_argument("-j", "--threads", type=threads_of, default=1, metavar="N", help="that read (default: 1)")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    return _verify(parser.parse_args(arguments))


def _run_list(arguments: list[str]) -> int:
    parser = _MainParser(prog="sealpoint")
    version = f"sealpoint {sealpoint.__version__} (format version {_sealpoint.format_version})"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("path", nargs="?")
    parsed, more = parser.parse_known_args(arguments)
    if more:
        is_option = more[0].startswith("-")
        parser.error(f"unknown option {more[0]}" if is_option else f"one PATH is expected, {more[0]} is another")
    if parsed.path is None:
        parser.error("a PATH or a command is expected")
    return _list(parsed.path, parsed.json)


def _check_command(parser: Parser, words: list[str]) -> None:
    """`sealpoint lss PATH`: a word that is neither a command nor a path."""
    if not words or words[0].startswith("-") or not _paths.is_local(words[0]) or os.path.lexists(words[0]):
        return
    near = difflib.get_close_matches(words[0], _COMMANDS, 1)
    if near or (len(words) > 1 and not words[1].startswith("-")):
        meant = f"; did you mean `sealpoint {near[0]}`?" if near else ""
        parser.error(f"{words[0]} is neither a command ({', '.join(_COMMANDS)}) nor a path that exists{meant}")


def _run(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        return COMMANDS[words[0]](words[1:])
    if words and words[0] == "promote":
        return run_promote(words[1:])
    if words and words[0] == "bench":
        from sealpoint.bench._command import run_bench

        return run_bench(words[1:])
    if words and words[0] == "verify":
        return _run_verify(words[1:])
    if "--verify" in words:
        return _run_verify([word for word in words if word != "--verify"])
    _check_command(_MainParser(prog="sealpoint"), words)
    return _run_list(words)


def main() -> int:
    """Runs the command line; returns its exit status."""
    return run(lambda: _run(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
