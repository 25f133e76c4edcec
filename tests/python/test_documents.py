# SPDX-License-Identifier: Apache-2.0
"""The blocks of docs/guides/python.md run, one after the other, as a reader would type them."""

import pathlib
import re

import pytest
import sealpoint

PAGE = pathlib.Path(__file__).parents[2] / "docs/guides/python.md"


def test_a_store_of_ones_own(tmp_path, monkeypatch, capsys):
    """The block of docs/guides/object-stores.md that registers a store."""
    pytest.importorskip("obstore")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.with_name("object-stores.md").read_text(), re.S)
    (block,) = [text for text in blocks if 'sealpoint.Series("local://' in text]
    exec(compile(block, "docs/guides/object-stores.md", "exec"), {})
    assert capsys.readouterr().out == "1 b'12345678'\n" and [path.name for path in tmp_path.iterdir()] == ["bucket"]


def test_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text()
    blocks = [(match.start(), match[1]) for match in re.finditer(r"```python\n(.*?)```", page, re.S)]
    assert len(blocks) >= 7
    names = {}
    for at, block in blocks:
        line = page.count("\n", 0, at) + 1
        exec(compile("\n" * line + block, str(PAGE), "exec"), names)
    output = capsys.readouterr().out
    assert "(4096, 1024) float32 16777216 100" in output and "committed True" in output
    assert "R-CMT-01" in output, "the error of the last block"
    assert (names["halves"] == names["weights"]).all() and (names["state"]["layers.0.w"] == names["weights"]).all()
    assert names["checkpoint"]["again"][5, 7] == names["half"][5, 7]
    assert sealpoint.verify("run/" + names["series"].list()[0].name).ok
