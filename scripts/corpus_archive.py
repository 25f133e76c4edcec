#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The conformance corpus, the specification and a reader in one archive, with which a reader is tested without a build.

    scripts/corpus_archive.py CORPUS ARCHIVE    CORPUS: what the target conformance_corpus makes, in the folder
                                                tests/conformance/corpus of a build; ARCHIVE: a .tar.xz

The same content gives the same bytes: names are sorted, and no time, user or machine is in it. All is below one folder that is
named after the archive.
"""

import argparse
import io
import json
import lzma
import pathlib
import sys
import tarfile

import spec_page

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = """# Conformance corpus of the Sealpoint format

| | |
|---|---|
| `spec/`, `schema/`, `sealpoint-1.md` | the specification; begin with `spec/README.md`, or read the one page from top to bottom |
| `corpus/`, `corpus.md`, `digests.txt` | small checkpoints, the expected answer of a reader to each, the XXH3-128 of each file |
| `contents.txt` | the content digest of each entry that loads |
| `sealpoint_reference/` | a reader in Python, with the standard library alone; codecs need a zstd (see its README) |
| `check_reader.py` | compares the answers of any reader with the table |

    python3 check_reader.py python3 {here}/verify.py
    python3 check_reader.py --level open python3 {here}/open.py
    python3 check_reader.py --level read python3 {here}/read.py
    python3 check_reader.py my-reader --json

`check_reader.py --help` says what it expects of a reader. Some entries are links, and links to nothing: unpack with a tar that
keeps them. Licence: Apache-2.0.
"""
PROGRAM = """import runpy
import sys

sys.argv[1:1] = {}
runpy.run_module("sealpoint_reference", run_name="__main__")
"""


def content(corpus):
    """(name, path or bytes) of all that is in it."""
    yield "README.md", README.encode()
    for name, words in (("verify", ["verify", "--json"]), ("open", ["open"]), ("read", ["read"])):
        yield f"{name}.py", PROGRAM.format(json.dumps(words)).encode()
    yield "sealpoint-1.md", str(spec_page.Page(ROOT / "spec")).encode()
    for name in ("tests/conformance/check_reader.py", "tests/conformance/corpus.md", "tests/conformance/digests.txt",
                 "tests/conformance/contents.txt", "LICENSE"):
        yield pathlib.PurePath(name).name, ROOT / name
    for folder, at in ((corpus, "corpus"), (ROOT / "spec", "spec"), (ROOT / "schema", "schema"),
                       (ROOT / "readers/reference/sealpoint_reference", "sealpoint_reference")):
        for path in folder.rglob("*"):
            name = path.relative_to(folder)
            if not {"__pycache__", "fixtures"} & set(name.parts) and name.name != "stamp":
                yield f"{at}/{name}", path
    yield "sealpoint_reference/README.md", ROOT / "readers/reference/README.md"


def member_of(name, source):
    member = tarfile.TarInfo(name)
    member.mode = 0o755 if isinstance(source, pathlib.Path) and source.is_dir() and not source.is_symlink() else 0o644
    if isinstance(source, bytes):
        return member, source
    if source.is_symlink():
        member.type, member.linkname = tarfile.SYMTYPE, str(source.readlink())
    elif source.is_dir():
        member.type = tarfile.DIRTYPE
    else:
        return member, source.read_bytes()
    return member, b""


def write_archive(path, members):
    """`members`: (name, path or bytes) of each."""
    top = path.name.removesuffix(".tar.xz")
    with lzma.open(path, "wb") as compressed, tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, source in sorted(members, key=lambda pair: pair[0]):
            member, data = member_of(f"{top}/{name}", source)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    print(f"{path}: {path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("archive", type=pathlib.Path)
    options = parser.parse_args()
    if not (options.corpus / "good-everything/COMMIT").exists():
        parser.error(f"{options.corpus} has no good-everything: it is not what the target conformance_corpus makes")
    if options.archive.exists():
        parser.error(f"{options.archive} is there: what was frozen is not made anew")
    write_archive(options.archive, content(options.corpus))
    return 0


if __name__ == "__main__":
    sys.exit(main())
