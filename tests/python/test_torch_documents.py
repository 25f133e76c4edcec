# SPDX-License-Identifier: Apache-2.0
"""The code of docs/torch.md, run from its first block to its last."""

import os
import pathlib
import re

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")


def test_the_page(tmp_path, monkeypatch):
    page = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"], "docs/torch.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, "docs/torch.md", "exec"), names)
    assert names["state"]["step"] == 102
