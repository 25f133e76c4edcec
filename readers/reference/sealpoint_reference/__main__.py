# SPDX-License-Identifier: Apache-2.0
"""python3 -m sealpoint_reference verify DIR [--level LEVEL] [--fingerprints] [--json] | open DIR | read DIR | list DIR |
cat DIR NAME [--object] | digest DIR; each with [--base DIR]... of a delta"""

import argparse
import json
import sys

from .content import checkpoint_digest
from .directory import PathDirectory
from .attributes import decode as decode_attributes
from .fingerprint import text as fingerprint_text
from .load import Checkpoint
from .marker import read_marker
from .registries import dtype_name
from .rules import EXIT_STATUS, Violation, verdict
from .verify import LEVELS, verify_path

_EXIT_USAGE = 64


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(_EXIT_USAGE, f"{self.prog}: {message}\n")


def _parse(arguments):
    parser = _Parser(prog="sealpoint_reference", description="Reads Sealpoint checkpoints by the specification alone.")
    commands = parser.add_subparsers(dest="command", required=True)
    verify = commands.add_parser("verify", help="check a checkpoint; exit status as ckpt verify's")
    verify.add_argument("directory")
    verify.add_argument("--level", choices=LEVELS, default="full")
    verify.add_argument("--fingerprints", action="store_true",
                        help="compare those of the index with the elements, at the level full")
    verify.add_argument("--json", action="store_true")
    for name, text in (("open", "open it, as every reader does first"), ("read", "load all of it")):
        commands.add_parser(name, help=f"{text}; prints JSON, as check_reader.py expects it").add_argument("directory")
    listing = commands.add_parser("list", help="tensors and objects")
    listing.add_argument("directory")
    cat = commands.add_parser("cat", help="write the raw bytes of a tensor, or of an object")
    cat.add_argument("directory")
    cat.add_argument("name")
    cat.add_argument("--object", action="store_true", help="the name is that of an object")
    content = commands.add_parser("digest", help="the content digest, spec/content-digest.md")
    content.add_argument("directory")
    for command in commands.choices.values():
        command.add_argument("--base", action="append", default=[], metavar="DIR",
                             help="the base of a delta, if it does not lie beside it; of a chain each one that does not")
    return parser.parse_args(arguments)


def _bases(options):
    """What --base names, by attempt."""
    directories = [PathDirectory(path) for path in options.base]
    return {read_marker(directory).attempt: directory for directory in directories}


def _checkpoint(options):
    return Checkpoint(PathDirectory(options.directory), _bases(options))


def _verify(options):
    report = verify_path(options.directory, options.level, options.fingerprints, _bases(options))
    if options.json:
        print(json.dumps({"path": options.directory, **report.as_dict()}, indent=2))
    else:
        for violation in report.violations:
            print(f"{verdict([violation])}: {violation}")
        for note in report.notes:
            print(f"note: {note}")
        print(f"{options.directory}: {report.verdict} ({report.level})")
    return EXIT_STATUS[report.verdict]


def _say(**content):
    print(json.dumps({"verdict": "committed", "violations": [], **content}))
    return 0


def _open(options):
    _checkpoint(options)
    return _say()


def _read(options):
    return _say(content=checkpoint_digest(_checkpoint(options)))


def _list(options):
    checkpoint = _checkpoint(options)
    for name, tensor in checkpoint.tensors.items():
        end = f" {fingerprint_text(tensor.fingerprint)}" if tensor.fingerprint else ""
        print(f"tensor {json.dumps(name)} {dtype_name(tensor.dtype)} {list(tensor.shape)} {tensor.raw_bytes} bytes{end}")
        _list_attributes("  ", tensor.attributes)
    for name, item in checkpoint.objects.items():
        print(f"object {json.dumps(name)} {item.media_type.decode()} {item.raw_bytes} bytes")
    _list_attributes("", checkpoint.index.metadata.attributes)
    return 0


def _list_attributes(indent, encoded):
    for name, value in decode_attributes(encoded).items() if encoded else ():
        print(f"{indent}attribute {json.dumps(name)} {json.dumps(value)}")


def _cat(options):
    checkpoint = _checkpoint(options)
    known, read = (checkpoint.objects, checkpoint.object) if options.object else (checkpoint.tensors, checkpoint.tensor)
    if options.name not in known:
        print(f"no {'object' if options.object else 'tensor'} of this name", file=sys.stderr)
        return EXIT_STATUS["unreadable"]
    sys.stdout.buffer.write(read(options.name))
    return 0


def _digest(options):
    print(checkpoint_digest(_checkpoint(options)))
    return 0


def main(arguments=None):
    options = _parse(arguments)
    try:
        return {"verify": _verify, "open": _open, "read": _read, "list": _list, "cat": _cat,
                "digest": _digest}[options.command](options)
    except Violation as violation:
        if options.command in ("open", "read"):
            found = {"code": violation.code, "rule": violation.rule, "file": violation.file}
            print(json.dumps({"verdict": verdict([violation]), "violations": [found]}))
        print(violation, file=sys.stderr)
        return EXIT_STATUS[verdict([violation])]


if __name__ == "__main__":
    sys.exit(main())
