# SPDX-License-Identifier: Apache-2.0
"""The command ``ckpt bench``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

from sealpoint._command import Parser, end_by_signals, flush, write_document, write_error, write_line
from sealpoint._errors import InvalidArgumentError, IoError, UnsupportedError
from sealpoint._sealpoint import printable
from sealpoint.bench import _page, _results, _state, _table, _words
from sealpoint.bench._facts import facts_of, memory_bytes
from sealpoint.bench._measure import Options, Run
from sealpoint.bench._peers import INFOS, OURS, side_here, why_left_out
from sealpoint.bench._place import Place
from sealpoint.interop._command import size_of

_FAULT = 1
_COUNT_MAX = 1_000_000


def _count(least: int) -> Callable[[str], int]:
    def count_of(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= _COUNT_MAX:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {least} to {_COUNT_MAX:,}")
        return int(text)

    return count_of


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= 1e5:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes, expected more than 0 and at most 1e5")
    return minutes


def _peers(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in INFOS:
            raise argparse.ArgumentTypeError(f"{name!r} is not known, expected some of {','.join(INFOS)}")
    return [name for name in INFOS if name == OURS or name in names]


def make_parser() -> Parser:
    parser = Parser(
        prog="ckpt bench",
        description="Compares Sealpoint on your storage with torch.distributed.checkpoint, torch.save and safetensors, if they are "
        "installed. Measures saves, the stall of a background save, many small tensors, and loads with the same and with a "
        "different number of ranks, warm and cold. Also loads after flipped bits and after killed saves. Starts its own processes "
        "and writes only into a new folder below PATH, which it removes at the end, even after an error or Ctrl-C. The report "
        "starts with the cases in which Sealpoint is slower. See docs/start/bench.md for how to read it.",
        epilog="Exit status: 0 done, regardless of the results; 1 Sealpoint failed or loaded wrong data; 3 neither torch nor "
        "numpy is installed; 4 PATH cannot be written or has too little space, or any other error; 64 wrong usage, or refused; "
        "70 a bug; 74 standard output could not be written; 128 + n ended by the signal n.",
    )
    parser.add_argument("path", metavar="PATH", help="an existing directory of the storage, or a URL of an object store")
    parser.add_argument("--size", type=size_of, default=256_000_000, metavar="SIZE", help="size of the state (default: 256MB)")
    parser.add_argument(
        "--minutes", type=_minutes, default=3.0, metavar="M",
        help="duration of the measurements (default: 3); measurements in progress may take a quarter of it longer, or 30 s",
    )
    parser.add_argument("--rounds", type=_count(1), default=9, metavar="N", help="maximum number of rounds (default: 9)")
    parser.add_argument("--ranks", type=_count(1), default=2, metavar="N", help="saving processes (default: 2)")
    parser.add_argument(
        "--load-ranks", type=_count(1), metavar="N", help="processes for the second load (default: one more than --ranks)"
    )
    parser.add_argument("--small", type=_count(1), default=10_000, metavar="N", help="number of small tensors (default: 10000)")
    parser.add_argument("--flips", type=_count(0), default=16, metavar="N", help="flipped bits (default: 16)")
    parser.add_argument("--kills", type=_count(0), default=8, metavar="N", help="killed saves (default: 8)")
    parser.add_argument(
        "--peers", type=_peers, default=list(INFOS), metavar="LIST", help=f"a subset of {','.join(INFOS)} (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, also after an error")
    parser.add_argument("--html", metavar="FILE", help="also write a self-contained HTML page")
    return parser


def _options(arguments: argparse.Namespace, parser: Parser) -> tuple[Options, dict[str, str]]:
    """Returns the options, and the reason for each peer that is left out.

    Raises UnsupportedError and InvalidArgumentError.
    """
    side = side_here()
    if side is None:
        raise UnsupportedError("neither torch nor numpy is installed: pip install 'sealpoint[numpy]', or torch")
    ranks = arguments.ranks if side == "torch" else 1
    other_ranks = (arguments.load_ranks or ranks + 1) if side == "torch" else 1
    if side == "torch" and other_ranks == ranks:
        parser.error(f"argument --load-ranks: {ranks} is the number of --ranks, expected a different number")
    options = Options(arguments.size, arguments.minutes, ranks, other_ranks, arguments.rounds, arguments.small,
                      arguments.flips, arguments.kills, side, arguments.peers)  # fmt: skip
    least = _state.least_size_bytes(options.rows_multiple())
    if options.size_bytes < least:
        raise InvalidArgumentError(f"--size is {options.size_bytes:,} bytes, expected at least {least:,} for this number of ranks")
    free = memory_bytes("MemAvailable")
    if free is not None and options.memory_bytes() > free:
        raise InvalidArgumentError(f"--size {options.size_bytes:,} needs {options.memory_bytes():,} bytes of memory, and "
                                   f"{free:,} are free: give a smaller --size")  # fmt: skip
    return options, {name: "--peers leaves it out" for name in INFOS if name not in arguments.peers}


class _Progress:
    """Shows the current measurement on a terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        if self._is_terminal:
            write_error(f"\r{text}\x1b[K")

    def end(self) -> None:
        self("")


def _leave_out(options: Options, left_out: dict[str, str], is_url: bool) -> None:
    for name in list(options.peers):
        why = why_left_out(name, options.side, is_url)
        if why is not None and name != OURS:
            options.peers.remove(name)
            left_out[name] = why


def run_bench(parser: Parser, words: list[str]) -> int:
    arguments = parser.parse_args(words)
    end_by_signals()
    options, left_out = _options(arguments, parser)
    page = None if arguments.html is None else _page.PageFile(arguments.html)
    place = Place(arguments.path, options.disk_bytes(), f"--size {_words.size(options.size_bytes)}")
    _leave_out(options, left_out, place.is_url)
    progress, began = _Progress(), time.monotonic()
    with place:
        place.make()
        if not arguments.json:
            write_line(f"ckpt bench on {printable(place.path)}: {_words.size(options.size_bytes)} on "
                       f"{_words.ranks(options.ranks)}, {options.minutes:g} min; it writes only below "
                       f"{printable(os.path.basename(place.folder))}, which is removed at the end")  # fmt: skip
            flush()  # raises output errors before the measurements begin
        run = Run(options, place, progress)
        run.results.left_out.update(left_out)
        try:
            run.all()
        except OSError as error:
            raise IoError(f"{error.strerror} (errno {error.errno})", path=place.folder) from None
        finally:
            progress.end()
        facts = facts_of(words, options, place, run.gpus, time.monotonic() - began)
    faults = run.results.faults()
    if page is not None:
        page.write(_page.make(run.results, facts))
    if arguments.json:
        write_document(_results.as_json(run.results, facts), _FAULT if faults else 0)
    else:
        write_line("\n".join(_table.lines(run.results, facts)))
    for fault in faults:
        write_error(f"ckpt bench: {printable(fault)}\n")
    return _FAULT if faults else 0
