# SPDX-License-Identifier: Apache-2.0
"""Random slips of places: the same one, nested, linked, swapped, another training's. No committed checkpoint goes."""

import os
import random
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
from conftest import command  # noqa: E402

SLIPS = 200


def state(step=0):
    return {"w": torch.full((100,), float(step)), "step": step}


@pytest.fixture
def places(tmp_path):
    """Two series, a local place with copies of one of them, and other ways to write these."""
    for name in ("a", "b"):
        with sp.Checkpointer(tmp_path / name, wait=True) as checkpoints:
            for step in (1, 2, 3):
                checkpoints.save(step, state(step))
    sp.save(state(4), tmp_path / "a", series=True, step=4, staged=tmp_path / "local", keep_local=9)
    sp.wait_for_promotions()
    os.symlink(tmp_path / "a", tmp_path / "link")
    os.mkdir(tmp_path / "empty")
    series = [tmp_path / name for name in ("a", "b", "link", "a/../a", "b/.", "local", "empty", "missing", ".")]
    return [*series, tmp_path / "a/inner", next((tmp_path / "a").glob("step-*1-*")), next((tmp_path / "b").glob("step-*3-*"))]


def committed(root):
    """Directories with a marker, whatever they lie in."""
    return {folder for folder, _, files in os.walk(root) if "COMMIT" in files}


def promote(local, final, *options):
    command("promote", *options, "--wait", "1", local, final)


def abandon(place):
    with sealpoint.BlobWriter(place) as writer:
        writer.add("w", torch.ones(10).numpy())
        writer.finish()
        raise sealpoint.InvalidArgumentError("after the end")


def entries(place):
    return [entry.name for entry in sealpoint.Series(place).list()] or ["none"]


CALLS = {
    "save": lambda x, y, of: sp.save(state(9), x, series=True, step=9, staged=y),
    "save_async": lambda x, y, of: sp.save_async(state(9), x, series=True, step=9, staged=y).result(),
    "save here": lambda x, y, of: sp.save(state(9), x),
    "save here, staged": lambda x, y, of: sp.save(state(9), x, staged=y),
    "resume": lambda x, y, of: sp.Checkpointer(x, staged=y).resume(state()),
    "clean": lambda x, y, of: sp.Checkpointer(x, staged=y).clean(),
    "keep": lambda x, y, of: sp.Checkpointer(x, keep=50, keep_best=("metric.none", "least", 1)).save(9, state(9)),
    "resume_promotions": lambda x, y, of: sp.resume_promotions(y, x),
    "promote": lambda x, y, of: promote(y, x),
    "promote --dry-run": lambda x, y, of: promote(y, x, "--dry-run"),
    "promote --adopt": lambda x, y, of: promote(y, x, "--adopt"),
    "prune": lambda x, y, of: sealpoint.Series(x).prune(keep_last=2, keep_best=("metric.none", "least", 1)),
    "clean one": lambda x, y, of: sealpoint.Series(x).clean(of.choice(entries(x))),
    "copy": lambda x, y, of: sealpoint.copy(x, y),
    "copy of one": lambda x, y, of: sealpoint.copy(os.path.join(x, of.choice(entries(x))), y),
    "abandon": lambda x, y, of: abandon(x),
}


def test_no_slip_loses_a_checkpoint(places, tmp_path, capsys):
    chosen = random.Random(7)
    done = 0
    for number in range(SLIPS):
        before = committed(tmp_path)
        name = chosen.choice(sorted(CALLS))
        x, y = chosen.choice(places), chosen.choice(places)
        try:
            CALLS[name](str(x), str(y), chosen)
            done += 1
        except (sealpoint.Error, SystemExit):
            pass
        sp.wait_for_promotions()  # also of a save whose call failed later
        gone = {path for path in before - committed(tmp_path) if f"{tmp_path}/local/" not in path}
        assert not gone, f"slip {number}: {name} of {x} and {y}"
    assert SLIPS // 10 < done < SLIPS, "some are right, and some are refused"
    for path in committed(tmp_path):
        assert sealpoint.verify(path).ok, path
