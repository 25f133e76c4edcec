# SPDX-License-Identifier: Apache-2.0
"""The archives of spec/fixtures: checkpoints, and what each holds (scripts/collect_fixtures.py); corpora with what checks a reader
(scripts/corpus_archive.py)."""

import json
import pathlib
import subprocess
import sys
import tarfile


def unpack(archives, folder):
    """{path of a checkpoint below `folder`: what fixtures.json says of it} of all archives of writers in the folder `archives`."""
    found = {}
    for path in sorted(archives.glob("[0-9]*.tar.xz")):
        with tarfile.open(path) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not before Python 3.11.4
            archive.extractall(folder)
        top = pathlib.Path(folder) / path.name.removesuffix(".tar.xz")
        found |= {top / name: facts for name, facts in json.loads((top / "fixtures.json").read_text()).items()}
    return found


def is_draft(path):
    """Whether it is of format version 0, which `ckpt copy` of the releases 1.0.x alone reads."""
    return int.from_bytes((path / "COMMIT").read_bytes()[12:16], "little") == 0


def check_reader(corpus, every, *command, level="verify"):
    """The answer of check_reader.py of an unpacked corpus about a reader in Python. Without the environment, so that nothing else
    is found."""
    words = [sys.executable, "check_reader.py", "--level", level, "--every", every, sys.executable, *command]
    return subprocess.run(words, cwd=corpus, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
