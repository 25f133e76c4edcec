# SPDX-License-Identifier: Apache-2.0
"""Ten thousand faults in published versions: a follower applies nothing that was not published, and goes on afterwards."""

import json
import os
import pathlib
import random
import shutil

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
from sealpoint.weights import Follower, Publisher  # noqa: E402

FAULTS = 10_000
VERSIONS = range(1, 8)  # full at 1 and 5


def publish(place, seed):
    """The versions of one training, and the bytes of each."""
    torch.manual_seed(seed)
    weights = {"w": torch.randn(3000).bfloat16(), "m": torch.randn(40, 50), "same": torch.arange(9)}
    publisher, expected = Publisher(place, full_every=4), {}
    for version in VERSIONS:
        for tensor in (weights["w"], weights["m"]):
            changed = torch.rand(tensor.shape) < 0.02
            tensor[changed] += 0.5
        publisher.publish(weights, version)
        expected[version] = {name: tensor.view(torch.uint8).numpy().tobytes() for name, tensor in weights.items()}
    return expected


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


def write(path, data):
    """Replaces a file, which may be a link to one of the template."""
    path.unlink()
    path.write_bytes(data)


def flipped(data, rng):
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)


def blind(data, rng):
    """Changes that Adler-32 does not see: +1, -2, +1."""
    at = rng.randrange(max(1, len(data) - 2))
    for i, change in enumerate((1, -2, 1)):
        if at + i < len(data):
            data[at + i] = (data[at + i] + change) % 256


def zeroed(data, rng):
    at = rng.randrange(len(data))
    size = min(rng.randrange(1, 200), len(data) - at)
    data[at : at + size] = bytes(size)


def cut_off(data, rng):
    del data[rng.randrange(len(data)) :]


def longer(data, rng):
    data += rng.randbytes(rng.randrange(1, 100))


def moved(data, rng):
    at, to = rng.randrange(len(data)), rng.randrange(len(data))
    size = min(rng.randrange(1, 100), len(data) - max(at, to))
    data[to : to + size] = data[at : at + size]


def change_bytes(directory, _template, _other, rng):
    files = files_of(directory)
    file = rng.choices(files, [file.stat().st_size for file in files])[0] if rng.random() < 0.5 else rng.choice(files)
    data = bytearray(file.read_bytes())
    rng.choice([flipped, blind, zeroed, cut_off, longer, moved])(data, rng)
    write(file, data)


def lose_a_file(directory, _template, _other, rng):
    rng.choice(files_of(directory)).unlink()


def upload_half(directory, _template, _other, rng):
    """As a publisher leaves it that was killed: without the marker, and without some files; one may be cut off."""
    files = files_of(directory)
    for file in rng.sample(files, rng.randrange(1, len(files) + 1)):
        if rng.random() < 0.5 or file.stat().st_size == 0:
            file.unlink()
        else:
            write(file, file.read_bytes()[: rng.randrange(file.stat().st_size)])
    for marker in directory.glob("COMMIT"):
        marker.unlink()


def take_files_of(directory, source, rng):
    """Under the names of this version: a rank that wrote nothing since, or something else."""
    theirs = {file.suffix: file for file in files_of(source)}
    file = rng.choice(files_of(directory))
    if file.suffix in theirs:
        write(file, theirs[file.suffix].read_bytes())


def same_version(directory, other):
    step = directory.name.rpartition("-")[0]
    (found,) = other.glob(f"{step}-*")
    return found


def stale_rank(directory, template, _other, rng):
    take_files_of(directory, rng.choice([path for path in template.iterdir() if path.is_dir()]), rng)


def rank_of_another_training(directory, _template, other, rng):
    take_files_of(directory, same_version(directory, other), rng)


def version_of_another_training(directory, _template, other, rng):
    """Under its own name, or in the place of this version."""
    source = same_version(directory, other)
    shutil.rmtree(directory)
    shutil.copytree(source, rng.choice([directory, directory.with_name(source.name)]))


def swapped(directory, template, _other, rng):
    """The content of another version under this name."""
    source = rng.choice([path for path in template.iterdir() if path.is_dir()])
    shutil.rmtree(directory)
    shutil.copytree(source, directory)


KINDS = [change_bytes, lose_a_file, upload_half, stale_rank, rank_of_another_training, version_of_another_training, swapped]


def link_tree(source, target):
    shutil.copytree(source, target, copy_function=os.link)


class Job:
    def __init__(self, root):
        self.template, self.other, self.place, self.root = root / "template", root / "other", root / "place", root
        self.expected, self.theirs = publish(self.template, 1), publish(self.other, 2)
        self.names = {entry.step: pathlib.Path(entry.path).name for entry in sealpoint.Series(self.template).list()}

    def check(self, follower, seen):
        """What the follower holds was published as a whole by one of the trainings."""
        found = {name: tensor.tobytes() for name, tensor in follower.tensors().items()}
        assert found in (self.expected[follower.version], self.theirs[follower.version]), (seen, follower.version)

    def update(self, follower, seen):
        before = follower.version
        try:
            follower.update()
        except sealpoint.Error as error:
            assert follower.version == before, (seen, error)
            return error
        if follower.version is not None:
            self.check(follower, seen)
        return None

    def run(self, rng, counts):
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        first, last = rng.randrange(1, 5), rng.randrange(5, 7)
        for version in range(1, first + 1):
            link_tree(self.template / self.names[version], self.place / self.names[version])
        with Follower(self.place, host_folder=self.root / "host") as follower:
            if rng.random() < 0.8:  # others start when the fault is there
                assert self.update(follower, None) is None and follower.version == first
            for version in range(first + 1, last + 1):
                link_tree(self.template / self.names[version], self.place / self.names[version])
            target = rng.randrange(first + 1 if rng.random() < 0.8 else 1, last + 1)
            kind = rng.choice(KINDS)
            kind(self.place / self.names[target], self.template, self.other, rng)
            seen = (kind.__name__, first, last, target)
            error = self.update(follower, seen)
            outcome = "error" if error is not None else "older" if follower.version != last else "newest"
            counts[kind.__name__, outcome] = counts.get((kind.__name__, outcome), 0) + 1
            # The publisher publishes again what is damaged, and goes on.
            for path in self.place.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
            for version in VERSIONS:
                link_tree(self.template / self.names[version], self.place / self.names[version])
            error = self.update(follower, seen)
            assert error is None and follower.version == 7, (seen, error)
            assert {name: tensor.tobytes() for name, tensor in follower.tensors().items()} == self.expected[7], seen


def test_faults(tmp_path):
    job, counts = Job(tmp_path), {}
    for seed in range(FAULTS):
        rng = random.Random(seed)
        try:
            job.run(rng, counts)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
    print(*(f"{name} {outcome}: {count}" for (name, outcome), count in sorted(counts.items())), sep="\n")
    assert {name for name, _ in counts} == {kind.__name__ for kind in KINDS}
    if os.environ.get("SEALPOINT_RESULTS"):
        outcomes = {"faults": FAULTS, "errors": 0, "older versions": 0, "wrong versions": 0}
        for (_, outcome), count in counts.items():
            key = {"error": "errors", "older": "older versions"}.get(outcome)
            if key is not None:
                outcomes[key] += count
        row = {"row": "weights-faults", "title": "Followers of weights after faults in published versions", "exact": False,
               "command": "ctest --test-dir build/dev -R python.weights_faults", "counts": outcomes}  # fmt: skip
        pathlib.Path(os.environ["SEALPOINT_RESULTS"], "weights-faults.json").write_text(json.dumps(row) + "\n")
