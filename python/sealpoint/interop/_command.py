# SPDX-License-Identifier: Apache-2.0
"""The commands ``sealpoint convert`` and ``sealpoint ls``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
import time
from collections.abc import Callable, Sequence

from sealpoint._arguments import path_of
from sealpoint._command import LEFT_OUT, Parser, end_by_signals, write_error, write_line
from sealpoint._errors import Error
from sealpoint._sealpoint import printable
from sealpoint._series import Series, Unfinished
from sealpoint.interop import _copy, _listing
from sealpoint.interop._convert import FORMATS, THREADS_DEFAULT, Report, convert
from sealpoint.interop._open import open_source
from sealpoint.interop._safetensors_write import SHARD_BYTES_DEFAULT

_UNITS = {
    "": 1,
    "K": 1000,
    "M": 1000**2,
    "G": 1000**3,
    "T": 1000**4,
    "KI": 1 << 10,
    "MI": 1 << 20,
    "GI": 1 << 30,
    "TI": 1 << 40,
}
_LIST_MAX = 20


def size_of(text: str) -> int:
    match = re.fullmatch(r"(\d{1,15})\s*([KMGT]?I?)B?", text.upper())
    if match is None or match[2] not in _UNITS or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a size such as 5GB or 256MiB")
    return int(match[1]) * _UNITS[match[2]]


def _rule(text: str) -> tuple[str, str]:
    source, equals, target = text.partition("=")
    if not equals or not source or not target:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a rule PATTERN=NAME")
    return source, target


def _convert_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="sealpoint convert",
        description="Converts a checkpoint: DCP, Megatron, safetensors, torch.save, Sealpoint.",
        epilog="Patterns: * is any characters, also dots; ? is one. docs/guides/convert.md has recipes. Exit status: 0 done, 1 the "
        "source is corrupt or the comparison failed, 3 unsupported or beyond a limit, 4 any other error, 5 incomplete, 6 "
        "done but for what is named as left out, 64 wrong usage, 74 standard output could not be written, 128 + n ended by "
        "the signal n.",
    )
    parser.add_argument("source", metavar="SRC", help="file or directory of any known format")
    parser.add_argument("destination", metavar="DST", help="what is made; must not exist")
    parser.add_argument(
        "--to",
        choices=FORMATS,
        help="its format (default: by the suffix of DST: .safetensors; .pt, .pth, .bin, .ckpt: torch; none: sealpoint)",
    )
    parser.add_argument(
        "--match", action="append", default=[], metavar="PATTERN", help="convert only these names; repeatable"
    )
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="PATTERN",
        help="leave these names out, and files beside those of the format; repeatable; 'optimizer' stands for the usual "
        "names of its state",
    )
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        type=_rule,
        metavar="PATTERN=NAME",
        help="new names; a * in NAME is what that of the pattern was; repeatable, the first that fits is used",
    )
    parser.add_argument("--mapping", metavar="FILE", help="a file of rules that rename, split and unstack tensors")
    parser.add_argument("--back", action="store_true", help="use the mapping the other way round: join what it takes apart")
    parser.add_argument(
        "--buckets", metavar="FILE", help="where parameters lie in Megatron's buckets, by sealpoint.megatron.bucket_layout"
    )
    parser.add_argument("--tensors-only", action="store_true", help="leave out all values but tensors")
    parser.add_argument("--drop-unknown", action="store_true",
                        help="leave out values of unknown classes, and DCP tensors of dtypes that the format lacks")
    parser.add_argument(
        "--per-rank",
        action="append",
        default=[],
        metavar="PATTERN",
        help="each rank has its own of these names, in a directory of DCP with metadata per rank; repeatable",
    )
    parser.add_argument("--allow-part", action="store_true",
                        help="SRC is one of several files that are one state: convert it alone, with status 6")
    parser.add_argument("--allow-missing", action="append", default=[], metavar="PATTERN",
                        help="go on without these tensors, which the index of SRC names and no file has; repeatable")
    parser.add_argument(
        "--dtype", help="of all floating-point tensors, such as bf16 or bfloat16; refused if a value would change"
    )
    parser.add_argument(
        "--max-shard-size",
        type=size_of,
        default=SHARD_BYTES_DEFAULT,
        metavar="SIZE",
        help="of a file of --to hf (default: 5GB)",
    )
    parser.add_argument("--codec", choices=("none", "zstd", "bytesplit+zstd"), default="none", help="of --to sealpoint")
    parser.add_argument("-j", "--threads", type=int, help=f"that copy (default: the processors, at most {THREADS_DEFAULT})")
    parser.add_argument(
        "--memory",
        type=size_of,
        default=_copy.MEMORY_DEFAULT_BYTES,
        metavar="SIZE",
        help="for tensors under way (default: 256MiB)",
    )
    _add_metadata_memory(parser)
    parser.add_argument("--verify", action="store_true", help="read source and destination again, and compare")
    parser.add_argument("--dry-run", action="store_true", help="write nothing; say what would be")
    parser.add_argument("--json", action="store_true", help="report as JSON")
    return parser


def _add_metadata_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--metadata-memory", type=size_of, metavar="SIZE",
                        help="for names, values and places of tensors (default: 16 times what the files have, and 64MiB)")


class _Line:
    """Progress on a terminal: rate and remaining time."""

    def __init__(self) -> None:
        self._what, self._began = "", 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._began = what, now
        seconds = now - self._began
        rate = done / seconds if seconds > 0 else 0.0
        left = f", {(total - done) / rate:.0f} s left" if rate > 0 else ""
        percent = 100 * done // total if total else 100
        write_error(f"\r{what}: {percent} % of {total / 1e9:.2f} GB, {rate / 1e6:.0f} MB/s{left}\x1b[K")
        if done == total:
            write_error("\r\x1b[K")


def _print_report(report: Report, dry_run: bool) -> None:
    would = "would make" if dry_run else "made"
    write_line(
        f"{printable(report.path)}: {would} {report.format} of {report.source_format}: {report.tensor_count} tensors, "
        f"{report.raw_bytes:,} bytes in {report.seconds:.2f} s"
    )
    if dry_run:
        write_line(f"it would need {report.needed_bytes:,} bytes, which are free")
    for file in report.files if dry_run else ():
        write_line(f"{file.size_bytes:15,}  {printable(file.name)}")
    for name in report.dropped[:_LIST_MAX]:
        write_line(f"left out: {printable(name)}")
    if len(report.dropped) > _LIST_MAX:
        write_line(f"left out: {len(report.dropped) - _LIST_MAX} others, see --json")
    for name in report.missing:
        write_line(f"missing: {printable(name)}, which the index names")
    for one in report.left_out:
        if one.may_hold_state:
            write_line(f"LEFT OUT: {printable(one.name)} ({one.size_bytes:,} bytes): {printable(one.reason)}")
    others = [printable(one.name) for one in report.left_out if not one.may_hold_state]
    if others:
        write_line(f"note: not read, as the format does not count it as state: {', '.join(others)}")
    if not report.is_whole:
        write_line(f"note: status {LEFT_OUT}, as what is LEFT OUT may be state; --drop NAME says that it is to be left out")
    for note in report.notes:
        write_line(f"note: {printable(note)}")
    if report.unprotected_count:
        count = report.unprotected_count
        write_line(f"note: {count} tensors of the source have no digest, so damage to it would not be noticed")
    if report.verified_bytes is not None:
        write_line(f"verified: {report.verified_bytes:,} bytes of source and destination are equal")


def _run_convert(arguments: list[str]) -> int:
    args = _convert_parser().parse_args(arguments)
    end_by_signals()
    report = convert(
        args.source,
        args.destination,
        to=args.to,
        match=args.match,
        drop=args.drop,
        rename=args.rename,
        mapping=args.mapping,
        mapping_back=args.back,
        buckets=args.buckets,
        tensors_only=args.tensors_only,
        dtype=args.dtype,
        drop_unknown=args.drop_unknown,
        per_rank=args.per_rank,
        allow_part=args.allow_part,
        allow_missing=args.allow_missing,
        metadata_memory_bytes=args.metadata_memory,
        max_shard_bytes=args.max_shard_size,
        codec=args.codec,
        threads=args.threads,
        memory_bytes=args.memory,
        verify=args.verify,
        dry_run=args.dry_run,
        progress=_Line() if sys.stderr is not None and sys.stderr.isatty() else None,
    )
    if args.json:
        lists = {name: [one._asdict() for one in getattr(report, name)] for name in ("files", "left_out")}
        write_line(json.dumps({**dataclasses.asdict(report), **lists}))
    else:
        _print_report(report, args.dry_run)
    return 0 if report.is_whole else LEFT_OUT


def _unfinished(path: str) -> tuple[Sequence[Unfinished], Error | None]:
    """Lists incomplete uploads in an object store, or explains why they are unknown."""
    try:
        return Series(path).unfinished(), None
    except Error as error:  # such as a missing permission that reads do not need
        return [], error


def _run_ls(arguments: list[str]) -> int:
    parser = Parser(prog="sealpoint ls", description="Says what a checkpoint of any known format holds.")
    parser.add_argument("path", metavar="PATH", help="file, directory or URL; a series is listed, too")
    parser.add_argument("--per-rank", action="append", default=[], metavar="PATTERN", help="as for convert")
    _add_metadata_memory(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")
    args = parser.parse_args(arguments)
    reading = {"drop_unknown": True, "allow_part": True, "metadata_memory_bytes": args.metadata_memory}
    with open_source(args.path, per_rank=args.per_rank, **reading) as state:
        is_series = state.format == "sealpoint" and state.path != path_of(args.path)
        entries = Series(args.path).list() if is_series else []
        unfinished, problem = _unfinished(args.path) if is_series else ([], None)
        if args.json:
            listed = {"series": [_listing.entry_as_json(entry) for entry in entries]} if is_series else {}
            uploads = {"unfinished": [one._asdict() for one in unfinished]} if is_series and problem is None else {}
            write_line(json.dumps({**_listing.as_json(state), **listed, **uploads}))
        else:
            notes = [*map(_listing.unfinished_line, unfinished), *([f"unfinished uploads: {problem}"] if problem else [])]
            write_line("\n".join([*map(_listing.entry_line, entries), *notes, *_listing.lines(state)]))
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {"convert": _run_convert, "ls": _run_ls}
