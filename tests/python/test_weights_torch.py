# SPDX-License-Identifier: Apache-2.0
"""Four ranks that publish weights: each case of weights_cases.py is a test; and a publisher that is killed."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy
import pytest
import ranks

ranks.need_torch()
RANKS = 4


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return ranks.run("weights_cases", RANKS, tmp_path_factory.mktemp("job"), fork=True)


@pytest.mark.parametrize("case", [*ranks.names_of("weights_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"


PUBLISHER = """
import sys, torch
from sealpoint.weights import Publisher
place, first = sys.argv[1], int(sys.argv[2])
publisher = Publisher(place, full_every=4, keep=2)
for version in range(first, first + 1000):
    publisher.publish({"w": torch.full((1 << 18,), float(version)), "b": torch.full((7,), float(version))}, version)
    print(version, flush=True)
"""


def test_a_publisher_is_killed_at_any_moment(tmp_path):
    """A follower sees whole versions alone; the restarted publisher goes on."""
    from sealpoint.weights import Follower

    place, random, begin = tmp_path / "p", numpy.random.default_rng(5), 0
    with Follower(place, host_folder=tmp_path / "host") as follower:
        for _ in range(3):
            process = subprocess.Popen([sys.executable, "-c", PUBLISHER, place, str(begin)], stdout=subprocess.PIPE, text=True)
            assert process.stdout.readline() == f"{begin}\n", "the first version of a restarted publisher"
            end = time.monotonic() + 0.2 + random.random() / 3
            while time.monotonic() < end:
                if (update := follower.update()) is not None:
                    check_is_whole(follower, update)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            follower.update()
            begin = follower.version + 1
    assert begin > 4


def test_options_of_a_later_call_are_not_passed_over(tmp_path):
    import sealpoint
    import torch
    from sealpoint.weights import publish

    state = {"w": torch.ones(9)}
    publish(state, tmp_path, 1, full_every=3)
    publish(state, tmp_path, 2, full_every=3)
    for options in ({"full_every": 1}, {}, {"full_every": 3, "keep": 2}):
        with pytest.raises(sealpoint.InvalidArgumentError, match=r"first call for this place were \{'full_every': 3\}"):
            publish(state, tmp_path, 3, **options)
    publish(state, tmp_path / "other", 1)
    assert publish(state, tmp_path, 3, full_every=3).version == 3


def test_verify_says_how_to_find_a_base_elsewhere(tmp_path):
    """And the option of its hint does that, in front of the path as docs/reference/tools.md has it."""
    subprocess.run([sys.executable, "-c", PUBLISHER.replace("1000", "2"), tmp_path / "p", "0"], check=True)
    base, delta = sorted((tmp_path / "p").iterdir())
    elsewhere = base.rename(tmp_path / "elsewhere")
    ckpt = lambda *words: subprocess.run([sys.executable, "-m", "sealpoint", "verify", *words], capture_output=True, text=True,
                                         check=False)  # fmt: skip
    done = ckpt(delta)
    assert (done.returncode, "R-DLT-03" in done.stdout) == (5, True), done
    assert re.search(r"hint: .*: --base DIR names the directory of a base elsewhere", done.stderr + done.stdout)
    done = ckpt("--base", elsewhere, delta)
    assert done.returncode == 0 and f"{delta}: valid" in done.stdout, done


def check_is_whole(follower, update):
    tensors = follower.tensors()
    assert set(numpy.unique(tensors["w"])) == set(numpy.unique(tensors["b"])) == {float(update.version)}
