# SPDX-License-Identifier: Apache-2.0
"""Builds one HTML page about a run. The page has no scripts or external resources."""

from __future__ import annotations

import html
import os
import secrets
from typing import Any

from sealpoint import _sealpoint
from sealpoint._arguments import local_path_of
from sealpoint._errors import AlreadyExistsError, Error, InvalidArgumentError, IoError, NotFoundError
from sealpoint._sealpoint import printable
from sealpoint.bench import _words
from sealpoint.bench._peers import INFOS, OURS
from sealpoint.bench._results import Results, Row, bits_words, kills_words
from sealpoint.bench._style import STYLE

_BEGIN = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="generator" content="ckpt bench">\n'

_SCALE_MAX = 1.75


def make(results: Results, facts: dict[str, Any]) -> str:
    parts = [_head(facts), _slower(results, facts), _cards(facts), _times(results, facts), _mishaps(results), _missing(results),
             _details(facts)]  # fmt: skip
    return (
        f"{_BEGIN}"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>ckpt bench: {_text(facts['path'])}</title>\n<style>{STYLE}</style>\n"
        f"<body>\n{''.join(parts)}"
        f"<footer>Made by ckpt bench, sealpoint {_text(facts['sealpoint'])}.</footer>\n</body>\n</html>\n"
    )


def _text(text: object) -> str:
    """Escapes text for use in an element or in a quoted attribute."""
    return html.escape(printable(str(text)))


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{_text(title)}</h2>\n{content}</section>\n"


def _head(facts: dict[str, Any]) -> str:
    when = facts["created"].replace("T", " ").replace("+00:00", " UTC")
    return (
        f"<header>\n<h1>Sealpoint on this storage</h1>\n<p class=\"dim\"><code>{_text(facts['path'])}</code>, "
        f"{_text(facts['file_system'])}, measured on {_text(when)}</p>\n</header>\n"
    )


def _slower(results: Results, facts: dict[str, Any]) -> str:
    items = "".join(f"<li>{_text(_words.slower(result, facts))}</li>\n" for result in results.slower())
    content = f"<ul>\n{items}</ul>\n" if items else f"<p>{_text(_words.nowhere_slower(results))}</p>\n"
    faults = "".join(f"<p><b>Fault of Sealpoint:</b> {_text(fault)}</p>\n" for fault in results.faults())
    kind = "note slow" if items or faults else "note"
    return f'<section class="{kind}">\n<h2>Where Sealpoint is slower</h2>\n{faults}{content}</section>\n'


def _card(name: str, value: object, more: str) -> str:
    return f'<div class="card"><small>{_text(name)}</small><b>{_text(value)}</b><small>{_text(more)}</small></div>\n'


def _cards(facts: dict[str, Any]) -> str:
    options, machine = facts["options"], facts["machine"]
    more = f"and {options['other_ranks']} that load" if options["other_ranks"] else "torch is not installed"
    cards = _card("State", _words.size(options["size_bytes"]), f"and {options['small']:,} small tensors")
    cards += _card("Ranks", options["ranks"], more)
    cards += _card("Processors", machine["processors"], machine["processor"])
    if machine["gpus"]:
        cards += _card("GPU", len(machine["gpus"]), machine["gpus"][0])
    cards += _card("Time", f"{facts['seconds']:.0f} s", f"of {options['minutes']:g} min, in at most {options['rounds']} rounds")
    return f'<div class="cards">\n{cards}</div>\n'


def _bar(row: Row, peer: str, longest: float) -> str:
    spread = row.figures[peer].spread()
    median, least, greatest = (min(100.0, 100 * value / longest) for value in spread[:3])
    label = f"{INFOS[peer].title}: {_words.spread(spread)}"
    ratio = row.times_as_fast(peer)
    rate = "" if row.operation == "stall" else f", {_words.size(row.nbytes / spread.median)}/s"
    said = "" if ratio is None else f"; Sealpoint is {_words.times(ratio)} times as fast"
    kind, name = "ours" if peer == OURS else "theirs", _text(INFOS[peer].title).replace(".", ".<wbr>")
    return (
        f'<span>{name}</span><svg viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label="{_text(label)}">'
        f'<rect class="{kind}" y="1" width="{median:.2f}" height="10"/>'
        f'<path class="range" d="M{least:.2f} 6H{greatest:.2f}"/></svg>'
        f"<small>{_text(_words.spread(spread))}{_text(rate)}{_text(said)}</small>\n"
    )


def _figure(row: Row, facts: dict[str, Any]) -> str:
    spreads = [figure.spread() for figure in row.figures.values()]
    # Limits the scale, so that a single slow round does not hide the differences between the medians.
    longest = min(max(spread.greatest for spread in spreads), _SCALE_MAX * max(spread.median for spread in spreads)) or 1.0
    bars = "".join(_bar(row, peer, longest) for peer in INFOS if peer in row.figures)
    return (
        f"<figure>\n<h3>{_text(_words.title(row, facts))}, {_text(_words.size(row.nbytes))}</h3>\n"
        f'<figcaption>{_text(_words.sentence(row, facts))}</figcaption>\n<div class="bars">\n{bars}</div>\n</figure>\n'
    )


def _times(results: Results, facts: dict[str, Any]) -> str:
    bars = f"Bars are medians, lines go from the least to the greatest round, cut at {_SCALE_MAX:g} times the longest bar."
    note = f"<p>{_text(_words.HOW_TO_READ)} {_text(bars)}</p>\n"
    figures = "".join(_figure(row, facts) for row in results.rows)
    return _section("Times", f'{note}<div class="figs">\n{figures}</div>\n')


def _mishaps(results: Results) -> str:
    if not results.bits and not results.kills:
        return ""
    head = "".join(f"<th>{_text(title)}</th>" for title, _ in (_words.BITS, _words.KILLS))
    rows = ""
    for peer in results.peers():
        cells = [words(tallies[peer]) if peer in tallies else "–"
                 for tallies, words in ((results.bits, bits_words), (results.kills, kills_words))]  # fmt: skip
        rows += f"<tr><td>{_text(INFOS[peer].title)}</td>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>\n"
    notes = "".join(f"<p>{_text(title)}: {_text(text)}</p>\n" for title, text in (_words.BITS, _words.KILLS))
    return _section("Damage", f'{notes}<div class="scroll"><table>\n<tr><th></th>{head}</tr>\n{rows}</table></div>\n')


def _missing(results: Results) -> str:
    items = "".join(f"<li>{_text(word)}</li>\n" for word in _words.missing(results))
    return _section("Left out, failed, and noted", f"<ul>\n{items}</ul>\n") if items else ""


def _details(facts: dict[str, Any]) -> str:
    machine = facts["machine"]
    memory = machine["memory_bytes"]
    rows = {
        "Command": facts["command"],
        "Versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
        "Machine": f"{machine['processors']} processors of {machine['processor']}, {_words.size(memory or 0)} of memory, "
                   f"{machine['kernel']}; load average {machine['load_average']} at the end",
        "GPU": ", ".join(machine["gpus"]) or "none that torch finds",
        "File system": f"{facts['file_system']}, at {facts['path']}",
        "Page cache": facts["page_cache"],
        **{fact["title"]: fact["options"] for fact in facts["peers"].values()},
    }  # fmt: skip
    content = "".join(f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>\n" for name, value in rows.items())
    return _section("How it was measured", f'<div class="scroll"><table>\n{content}</table></div>\n')


class PageFile:
    """The file to which the page is written. Replaces a page of an earlier run, but no other file."""

    def __init__(self, path: str) -> None:
        """Checks the path, before the measurements begin.

        Raises AlreadyExistsError, InvalidArgumentError, NotFoundError and IoError.
        """
        self.path = local_path_of(path, "--html", "a page is written to a file")
        folder, name = os.path.split(os.path.abspath(self.path))
        if os.path.isdir(self.path):
            raise InvalidArgumentError("--html is a directory, expected the name of a file", path=self.path)
        if not os.path.isdir(folder):
            raise NotFoundError("the directory of the page does not exist: create it, or pass another --html", path=folder)
        self._check_replaced()
        tried = os.path.join(folder, f".{name}-{secrets.token_hex(4)}.tmp")
        self._write("", tried)
        _sealpoint.remove_path(tried)

    def write(self, page: str) -> None:
        """Writes the page atomically. Raises the same errors as ``__init__``."""
        self._check_replaced()
        self._write(page, self.path)

    def _check_replaced(self) -> None:
        if not os.path.lexists(self.path):
            return
        if os.path.isfile(self.path) and not os.path.islink(self.path):
            with open(self.path, "rb") as opened:
                if opened.read(len(_BEGIN)) == _BEGIN.encode():
                    return
        raise AlreadyExistsError(
            "the file was not written by ckpt bench and is not replaced: pass another --html",
            path=self.path,
        )

    def _write(self, text: str, path: str) -> None:
        try:
            _sealpoint.write_file(path, text.encode())
        except Error as error:
            raise IoError(f"the page cannot be written: {error.message}", path=self.path) from None
