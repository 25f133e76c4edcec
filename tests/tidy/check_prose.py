#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how the prose of docs, public headers and docstrings reads, and compares it with the limits below.

    check_prose.py [--root DIR] [--files]     one line per area; --files adds each file above the limit, worst first

Two numbers: pronouns that stand for a noun ("what is pending" for "pending saves") per 1,000 words, and the 90th percentile
of the words in a sentence. For comparison: the headers of leveldb have 0.2 of these pronouns, the docs of icechunk 1.3.
Exit status 1 above a limit.
"""

import argparse
import ast
import pathlib
import re
import sys

PRONOUNS = re.compile(r"\b(what|whose|those|whoever|nobody|somebody|of which|of whom)\b", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
SENTENCE_WORDS_MAX = 26


def markdown(path):
    """The sentences of a page: without code, tables and titles."""
    lines, is_code = [], False
    for line in path.read_text().splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_prose = not is_code and not re.match(r"\s*(\||    |<!--|#|```)", line)
        lines.append(line if is_prose else ".")
    text = re.sub(r"`[^`]*`", "x", "\n".join(lines))
    return re.sub(r"\]\([^)]*\)", "]", text)


def comments(path):
    lines = []
    for line in path.read_text().splitlines():
        match = re.match(r"\s*//+\s?(.*)", line) or re.search(r"\s//\s(.*)$", line)
        lines.append(match.group(1) if match and not match.group(1).startswith("SPDX") else ".")
    return "\n".join(lines)


def docstrings(path):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
    return "\n.\n".join(ast.get_docstring(node) or "" for node in nodes)


# (area, its files, how their text is read, pronouns per 1,000 words at most)
AREAS = (
    ("docs", ("*.md", "docs/**/*.md", "examples/**/*.md"), markdown, 3.0),
    ("public headers", ("include/**/*.h",), comments, 3.0),
    ("docstrings", ("python/sealpoint/**/*.py",), docstrings, 3.0),
)


def measure(text):
    """Words, pronouns per 1,000 words, and the 90th percentile of the words in a sentence."""
    words = len(WORD.findall(text))
    lengths = sorted(len(WORD.findall(sentence)) for sentence in re.split(r"[.!?]+\s", text))
    lengths = [length for length in lengths if length > 3]
    return words, 1000 * len(PRONOUNS.findall(text)) / max(words, 1), lengths[len(lengths) * 9 // 10] if lengths else 0


def check(root, shows_files):
    errors = 0
    for area, patterns, read, pronouns_max in AREAS:
        paths = [path for pattern in patterns for path in sorted(root.glob(pattern)) if path.name != "CHANGELOG.md"]
        texts = {path: read(path) for path in paths}
        words, pronouns, p90 = measure("\n".join(texts.values()))
        is_good = pronouns <= pronouns_max and p90 <= SENTENCE_WORDS_MAX
        errors += not is_good
        print(f"{'ok' if is_good else 'error'}: {area}: {pronouns:.1f} pronouns per 1,000 of {words} words, at most "
              f"{pronouns_max}; 9 of 10 sentences have up to {p90} words, at most {SENTENCE_WORDS_MAX}")
        if shows_files:
            for rate, path in sorted(((measure(text)[1], path) for path, text in texts.items()), reverse=True):
                if rate > pronouns_max:
                    print(f"  {rate:5.1f} {path.relative_to(root)}")
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--files", action="store_true")
    arguments = parser.parse_args()
    return 1 if check(arguments.root, arguments.files) else 0


if __name__ == "__main__":
    sys.exit(main())
