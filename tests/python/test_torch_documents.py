# SPDX-License-Identifier: Apache-2.0
"""The code of docs/guides/torch.md, run from its first block to its last; the first blocks of README.md and
docs/guides/torch.md, run as a training that ends and goes on in a new process."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")


def blocks_of(document):
    page = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"], document).read_text()
    return re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)


def test_the_page(tmp_path, monkeypatch):
    blocks = blocks_of("docs/guides/torch.md")
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, "docs/guides/torch.md", "exec"), names)
    assert names["state"]["step"] == 102


def test_the_page_about_fingerprints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks_of("docs/guides/fingerprints.md"):
        exec(compile(block, "docs/guides/fingerprints.md", "exec"), names)
    assert set(names["held"]) == {"model.weight", "model.bias"}


def test_the_page_about_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks_of("docs/guides/weights.md"):
        exec(compile(block, "docs/guides/weights.md", "exec"), names)
    assert names["update"].version == 3 and names["newest"] == [None]
    names["follower"].close()


def losses_of(program, folder, seed):
    """Of a process, whose first weights follow from the seed."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", f"import torch\ntorch.manual_seed({seed})\n{program}"]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.splitlines()]


def test_the_first_block_of_the_readme_goes_on_in_a_new_process(tmp_path):
    text = blocks_of("README.md")[0]
    block, count = re.subn(r"^( *)(checkpoints\.step\(.*)", r"\1print(loss.item())\n\1\2", text, flags=re.M)
    shorter, ends = re.subn(r"\b1001\b", "251", block)
    assert (count, ends) == (1, 1)
    expected = losses_of(block, tmp_path / "whole", seed=1)
    assert len(expected) == 1000
    assert losses_of(shorter, tmp_path / "parts", seed=1) == expected[:250]
    assert losses_of(block, tmp_path / "parts", seed=2) == expected[200:], "from step 200, which was the last to be saved"


def test_the_command_of_the_readme_takes_its_training_to_torch(tmp_path, monkeypatch):
    """What was saved for models and optimizers of torch goes back without an option, and torch reads it alone."""
    import torch
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    page = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"], "README.md").read_text()
    command = re.search(r"`ckpt (convert run \w+ --to dcp)`", page)[1].split()
    block, ends = re.subn(r"\b1001\b", "101", blocks_of("README.md")[0])
    assert ends == 1
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    done = subprocess.run([sys.executable, "-m", "sealpoint", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "note: sealpoint.tree.parameters, which sealpoint.torch needs to load into changed models" in done.stdout
    dcp_to_torch_save(command[2], "back.pt")
    state = torch.load("back.pt", weights_only=True)
    for name, weight in names["model"].state_dict().items():
        assert torch.equal(state["model"][name], weight), name
    saved = names["optimizer"].state_dict()["state"]
    assert all(torch.equal(state["optimizer"]["state"][str(k)]["exp_avg"], saved[k]["exp_avg"]) for k in saved)


def test_the_first_block_of_the_readme_in_a_bucket(tmp_path):
    stores = pytest.importorskip("obstore.store")
    from sealpoint.storage import register
    from sealpoint.storage.obstore import ObstoreStore

    register("s3", lambda uri: ObstoreStore(stores.LocalStore(tmp_path), uri=uri))
    block, count = re.subn(r'"run", every=100', '"s3://bucket/run", every=2', blocks_of("README.md")[0])
    block, ends = re.subn(r"\b1001\b", "6", block)
    assert (count, ends) == (1, 1)
    exec(compile(block, "README.md", "exec"), {})
    assert [path.name[:17] for path in sorted((tmp_path / "run").iterdir())] == [f"step-{step:012}" for step in (2, 4)]


def test_the_first_block_of_the_page_goes_on_in_a_new_process(tmp_path):
    block = blocks_of("docs/guides/torch.md")[0]
    expected = losses_of(block + "print(train(3))\n", tmp_path / "whole", seed=1)
    first = losses_of(block, tmp_path / "parts", seed=1)
    assert [*first, *losses_of(block, tmp_path / "parts", seed=2)] == expected
    assert len(expected) == 2
