#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Doxygen's filter for the public headers: comments.py HEADER prints it with its comments in Doxygen's form.

A comment above a declaration becomes `///`, one behind it `///<`. The first one describes the file if it
stands before a blank line or a directive. Markup
characters outside of code spans are escaped. Line numbers stay those of the header.
"""

import pathlib
import re
import sys

COMMENT = re.compile(r'^(?P<code>(?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/))*)//(?P<text>.*)$')
# These describe no declaration: licence, rulers, notes for linters.
SILENT = re.compile(r" *(SPDX-|-{4,}|NOLINT|clang-format)")
# A comment behind a brace, a directive or an access label describes none, either.
NOT_DECLARED = re.compile(r"[{}]\s*$|^\s*(#(?!define)|public:|private:|protected:)")


def escape(text):
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([<>@\\&$%#])", r"\\\1", part) for part in parts)


def _listed(block):
    """Paragraphs with a hanging indent become items of a list, and an indented line behind a colon code."""
    block = [f" `{text.strip()}`" if text.startswith("  ") and before.endswith(":") else text
             for before, text in zip(["", *block], block, strict=False)]
    hangs = [text.startswith("  ") for text in block]
    begins = [not before.strip() or before.startswith("  ") for before in ["", *block]]
    return [f" -{text}" if begin and not hang and next_hangs and not text.startswith(" -") else text
            for text, begin, hang, next_hangs in zip(block, begins, hangs, [*hangs[1:], False], strict=False)]


def _own(block, following, indent, before, is_first):
    """A block of comment lines without code, between the lines `before` and `following`; with the line before it."""
    is_apart = is_first and (not following.strip() or re.match(r"#(?!define)", following))
    if SILENT.match(block[0]) or (is_apart and before):
        return [before, *[""] * len(block)]
    return ["/// \\file" if is_apart else before, *(f"{indent}///{escape(text)}" for text in _listed(block))]


def convert(lines):
    """The lines of a header; what stands before the first one, its licence, is left out."""
    result, at = [""], 1
    while at < len(lines):
        match = COMMENT.match(lines[at])
        if match is None:
            result.append(lines[at])
            at += 1
        elif match["code"].strip():
            code, at = match["code"], at + 1
            silent = SILENT.match(match["text"]) or NOT_DECLARED.search(code)
            result.append(code if silent else f"{code}///<{escape(match['text'])}")
            while at < len(lines) and re.match(rf" {{{len(code)}}}//", lines[at]):
                result.append("" if silent else f"{' ' * len(code)}///<{escape(lines[at][len(code) + 2:])}")
                at += 1
        else:
            block = [match["text"]]
            while at + len(block) < len(lines) and re.match(r"\s*//", lines[at + len(block)]):
                block.append(lines[at + len(block)].lstrip()[2:])
            at += len(block)
            result[-1:] = _own(block, lines[at] if at < len(lines) else "", match["code"], result[-1],
                               not any(line.startswith("///") for line in result))
    return result


if __name__ == "__main__":
    print("\n".join(convert(pathlib.Path(sys.argv[1]).read_text().splitlines())))
