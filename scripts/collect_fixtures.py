#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts checkpoints that real writers made into an archive of spec/fixtures, which no later change makes anew.

    scripts/collect_fixtures.py ARCHIVE WRITER=FOLDER...

WRITER: what wrote the checkpoints that are anywhere below FOLDER. Of each writer as many are taken as --most says, those that
hold the most tensors and objects among those of --bytes at most, no two with the same content and number of blobs. Each is
verified and read by the reader in Python (readers/reference); `fixtures.json` in the archive has what it found: writer, what it
says of itself, numbers of tensors, objects and blobs, and the content digest. A writer with no checkpoint is an error.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "readers/reference"), str(ROOT / "scripts")]
import corpus_archive  # noqa: E402
from sealpoint_reference.content import checkpoint_digest  # noqa: E402
from sealpoint_reference.directory import PathDirectory  # noqa: E402
from sealpoint_reference.load import Checkpoint  # noqa: E402
from sealpoint_reference.verify import verify_path  # noqa: E402


def files_of(folder):
    return sorted(path for path in folder.iterdir() if path.is_file())


def written_by(checkpoint):
    values = {bytes(entry.key): bytes(entry.value) for entry in checkpoint.index.metadata.views.provenance}
    return values.get(b"sealpoint.writer", b"").decode()


def facts_of(writer, folder):
    """None of a directory that is not a whole checkpoint."""
    if verify_path(folder).verdict != "committed":
        return None
    checkpoint = Checkpoint(PathDirectory(folder))
    return {"writer": writer, "said": written_by(checkpoint), "tensors": len(checkpoint.tensors),
            "objects": len(checkpoint.objects), "blobs": len(list(folder.glob("*.blob"))),
            "content": checkpoint_digest(checkpoint)}


def choose(writer, folder, options):
    """[(facts, folder)]"""
    found = {}
    for marker in sorted(folder.rglob("COMMIT")):
        if sum(path.stat().st_size for path in files_of(marker.parent)) > options.bytes:
            continue
        facts = facts_of(writer, marker.parent)
        if facts is not None and facts["tensors"] + facts["objects"] > 0:
            found.setdefault((facts["content"], facts["blobs"]), (facts, marker.parent))
    ranked = sorted(found.values(), key=lambda pair: -pair[0]["tensors"] - pair[0]["objects"])
    return ranked[: options.most]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("writers", nargs="+", metavar="WRITER=FOLDER")
    parser.add_argument("--most", type=int, default=3, help="checkpoints of a writer (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=200_000, help="of a checkpoint (default: %(default)s)")
    options = parser.parse_args()
    if options.archive.exists():
        parser.error(f"{options.archive} is there: fixtures are never made anew")
    members, listed = [], {}
    for word in options.writers:
        writer, separator, folder = word.partition("=")
        if not separator or not pathlib.Path(folder).is_dir():
            parser.error(f"{word!r}: expected WRITER=FOLDER, and a folder that is there")
        chosen = choose(writer, pathlib.Path(folder), options)
        if not chosen:
            parser.error(f"{word}: no whole checkpoint of {options.bytes} bytes at most is below it")
        for number, (facts, checkpoint) in enumerate(chosen):
            name = f"{writer}-{number}"
            listed[name] = facts
            members += [(f"{name}/{path.name}", path.resolve()) for path in files_of(checkpoint)]
    members.append(("fixtures.json", (json.dumps(listed, indent=1, sort_keys=True) + "\n").encode()))
    corpus_archive.write_archive(options.archive, members)
    print(f"{len(listed)} checkpoints of {len(options.writers)} writers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
