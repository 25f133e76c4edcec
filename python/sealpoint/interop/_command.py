# SPDX-License-Identifier: Apache-2.0
"""The command ``ckpt convert``."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
import time

from sealpoint._command import LEFT_OUT, Parser, end_by_signals, write_document, write_error, write_line
from sealpoint._sealpoint import printable
from sealpoint.interop import _copy
from sealpoint.interop._convert import FORMATS, THREADS_DEFAULT, Report, convert
from sealpoint.interop._gguf_write import VALUE_TYPES, value_of
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


def _gguf_key(text: str) -> tuple[str, tuple[str, object]]:
    key, equals, typed = text.partition("=")
    kind, colon, value = typed.partition(":")
    try:
        if equals and colon and key and kind in VALUE_TYPES and kind != "array":
            return key, (kind, value_of(kind, value))
    except (ValueError, KeyError):
        pass
    kinds = ", ".join(kind for kind in VALUE_TYPES if kind != "array")
    raise argparse.ArgumentTypeError(f"found {text!r:.80}, expected KEY=TYPE:VALUE with a TYPE of {kinds}")


def make_parser() -> Parser:
    parser = Parser(
        prog="ckpt convert",
        description="Converts a checkpoint: DCP, Megatron, safetensors, torch.save, GGUF, Sealpoint; writes HDF5.",
        epilog="In a PATTERN, * matches any characters, including dots, and ? matches a single character. See "
        "docs/guides/convert.md for recipes. "
        "Exit status: 0 done, 1 the source is corrupt or the comparison failed, 2 uncommitted, 3 unsupported or "
        "beyond a limit, 4 any other error, 5 incomplete, 6 done except for items listed as left out, 64 wrong usage, or "
        "refused, 70 a bug, 74 standard output could not be written, 128 + n ended by the signal n.",
    )
    parser.add_argument("source", metavar="SRC", help="file or directory of any known format")
    parser.add_argument("destination", metavar="DST", help="result; must not exist")
    parser.add_argument(
        "--to",
        choices=FORMATS,
        help="format of DST (default: by its suffix: .safetensors; .pt, .pth, .bin, .ckpt: torch; .gguf; .h5, .hdf5: hdf5; "
        "none: sealpoint)",
    )
    parser.add_argument(
        "--match", action="append", default=[], metavar="PATTERN", help="convert only these names; repeatable"
    )
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="PATTERN",
        help="leave out matching names and sidecar files; repeatable; 'optimizer' stands for the usual names of optimizer "
        "state",
    )
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        type=_rule,
        metavar="PATTERN=NAME",
        help="rename tensors; a * in NAME inserts the match of the * in PATTERN; repeatable, the first match applies",
    )
    parser.add_argument("--mapping", metavar="FILE", help="a file of rules that rename, split and unstack tensors")
    parser.add_argument("--back", action="store_true", help="apply the mapping in reverse: join the tensors that it splits")
    parser.add_argument(
        "--buckets", metavar="FILE", help="locations of parameters in Megatron's buckets, from sealpoint.megatron.bucket_layout"
    )
    parser.add_argument("--tensors-only", action="store_true", help="leave out all values except tensors")
    parser.add_argument("--drop-unknown", action="store_true",
                        help="leave out values of unknown classes, and DCP tensors with dtypes that the target lacks")
    parser.add_argument(
        "--per-rank",
        action="append",
        default=[],
        metavar="PATTERN",
        help="for DCP with metadata per rank: names that each rank has for itself; repeatable",
    )
    parser.add_argument("--allow-part", action="store_true",
                        help="convert SRC even if it is one of several files of one state, with status 6")
    parser.add_argument("--allow-missing", action="append", default=[], metavar="PATTERN",
                        help="continue without these tensors if the index of SRC names them but no file has them; repeatable")
    parser.add_argument("--base", metavar="CHECKPOINT",
                        help="with --to delta: what DST is a delta to; for SRC that is a delta: what its deltas start from")
    parser.add_argument(
        "--dtype", help="dtype of all floating-point tensors, such as bf16 or bfloat16; refused if a value would change"
    )
    parser.add_argument("--gguf-metadata", action="append", default=[], type=_gguf_key, metavar="KEY=TYPE:VALUE",
                        help="with --to gguf: a key to add or to replace, such as general.architecture=string:llama; repeatable")
    parser.add_argument(
        "--max-shard-size",
        type=size_of,
        default=SHARD_BYTES_DEFAULT,
        metavar="SIZE",
        help="maximum size of a file with --to hf (default: 5GB)",
    )
    parser.add_argument("--fingerprints", action="store_true", help="store fingerprints with --to sealpoint")
    parser.add_argument("--codec", choices=("none", "zstd", "bytesplit+zstd"), default="none", help="codec with --to sealpoint")
    parser.add_argument("-j", "--threads", type=int, help=f"threads that copy (default: all CPUs, at most {THREADS_DEFAULT})")
    parser.add_argument(
        "--memory",
        type=size_of,
        default=_copy.MEMORY_DEFAULT_BYTES,
        metavar="SIZE",
        help="memory for tensors in transit (default: 256MiB)",
    )
    parser.add_argument("--metadata-memory", type=size_of, metavar="SIZE",
                        help="memory for metadata of tensors (default: 16 times the size in the files, plus 64MiB)")
    parser.add_argument("--verify", action="store_true", help="read source and destination again and compare them")
    parser.add_argument("--dry-run", action="store_true", help="show the result without writing anything")
    parser.add_argument("--json", action="store_true", help="print one JSON document, also after an error")
    return parser


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
    what = "would be converted" if dry_run else "converted"
    tensors = f"{report.tensor_count} tensor{'' if report.tensor_count == 1 else 's'}"
    write_line(
        f"{printable(report.path)}: {what} from {report.source_format} to {report.format}: {tensors}, {report.raw_bytes:,} bytes "
        f"in {report.seconds:.2f} s"
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
    for entry in report.left_out:
        if entry.may_hold_state:
            size = f" ({entry.size_bytes:,} bytes)" if entry.size_bytes else ""  # of a directory it is not known
            write_line(f"LEFT OUT: {printable(entry.name)}{size}: {printable(entry.reason)}")
    others = [printable(entry.name) for entry in report.left_out if not entry.may_hold_state]
    if others:
        write_line(f"note: not read, because the format does not treat these as state: {', '.join(others)}")
    if not report.is_whole:
        write_line(f"note: status {LEFT_OUT}, because files LEFT OUT may hold state; --drop NAME excludes them")
    for note in report.notes:
        write_line(f"note: {printable(note)}")
    if report.unprotected_count:
        count = report.unprotected_count
        write_line(f"note: {count} tensors of the source have no digest, so damage to them cannot be detected")
    if report.verified_bytes is not None:
        write_line(f"verified: {report.verified_bytes:,} bytes of source and destination are equal")


def run_convert(parser: Parser, words: list[str]) -> int:
    args = parser.parse_args(words)
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
        gguf_metadata=dict(args.gguf_metadata) or None,
        drop_unknown=args.drop_unknown,
        per_rank=args.per_rank,
        allow_part=args.allow_part,
        allow_missing=args.allow_missing,
        base=args.base,
        metadata_memory_bytes=args.metadata_memory,
        max_shard_bytes=args.max_shard_size,
        codec=args.codec,
        fingerprints=args.fingerprints,
        threads=args.threads,
        memory_bytes=args.memory,
        verify=args.verify,
        dry_run=args.dry_run,
        progress=_Line() if sys.stderr is not None and sys.stderr.isatty() else None,
    )
    status = 0 if report.is_whole else LEFT_OUT
    if args.json:
        lists = {name: [item._asdict() for item in getattr(report, name)] for name in ("files", "left_out")}
        return write_document({**dataclasses.asdict(report), **lists}, status)
    _print_report(report, args.dry_run)
    return status
