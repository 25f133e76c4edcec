# SPDX-License-Identifier: Apache-2.0
"""Four ranks, of which three are killed, each in another phase of a save; run by test_torch_faults.py.

fault_ranks.py FOLDER RANK
"""

import contextlib
import datetime
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time

import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist

RANKS = 4
DEADLINE_SECONDS = 5
MIB = 1 << 20


@contextlib.contextmanager
def files_are_at_most(size_bytes):
    """Writes behind that size fail, with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def kill_at(folder, pattern):
    """Kills this process as soon as the folder has such a file."""

    def look():
        while not any(folder.glob(pattern)):
            time.sleep(0)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=look, daemon=True).start()


class Rank:
    def __init__(self, folder, rank):
        self.folder, self.rank = folder, rank
        dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS,
                                timeout=datetime.timedelta(seconds=60))
        self.state = {f"own{rank}": torch.full((4 * MIB,), float(rank)), "shared": torch.ones(100)}
        # Made while all ranks live.
        self.groups = {size: dist.new_group(list(range(size))) for size in (2, 3, 4)}

    def save(self, name, size, state=None, deadline=DEADLINE_SECONDS):
        return sp.save(self.state if state is None else state, self.folder / name, process_group=self.groups[size],
                       deadline=deadline)

    def fails(self, kinds, name, size, **options):
        """The error of a save, which all ranks have."""
        started = time.monotonic()
        try:
            self.save(name, size, **options)
        except kinds as error:
            assert time.monotonic() - started < 2 * DEADLINE_SECONDS, "the others wait for the deadline at most"
            return error
        raise AssertionError(f"{name} was saved")

    def first_is_whole(self, size):
        """And can be loaded by those that are left."""
        back = {f"own{self.rank}": torch.zeros(4 * MIB), "shared": torch.zeros(100)}
        sp.load(back, self.folder / "first", process_group=self.groups[size], contract=sp.Contract.partial(),
                deadline=DEADLINE_SECONDS)
        assert all(torch.equal(back[name], tensor) for name, tensor in self.state.items())


def one_rank_cannot_write(job):
    with files_are_at_most(MIB) if job.rank == 1 else contextlib.nullcontext():
        error = job.fails(sealpoint.IoError, "blob", 4)
    assert error.rank == 1, error
    assert "File too large" in str(error), error
    assert not any(job.folder.glob("blob/*")), "every rank took its files away"


def the_index_cannot_be_written(job):
    many = {f"rank{job.rank}.{i}": torch.ones(1) for i in range(3000 if job.rank else 1)}
    with files_are_at_most(16 << 10) if job.rank == 0 else contextlib.nullcontext():
        error = job.fails(sealpoint.IoError, "index", 4, state=many)
    assert (error.rank, error.unknown_outcome) == (0, False), error
    assert not any(job.folder.glob("index/*"))


def the_disk_is_full(job):
    full = job.folder / "full"
    if job.rank == 0:
        full.mkdir()
        is_mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", full], check=False).returncode == 0
        (job.folder / "mounted").write_text(str(is_mounted))
    dist.barrier()
    if (job.folder / "mounted").read_text() != "True":
        return
    try:
        error = job.fails(sealpoint.NoSpaceError, "full/c", 4)
        assert error.path is not None, error
        dist.barrier()
        assert not any(full.glob("c/*"))
        dist.barrier()
    finally:
        if job.rank == 0:
            subprocess.run(["umount", full], check=True)


def one_never_comes(job):
    """To where the ranks tell each other what they have."""
    if job.rank == 3:
        time.sleep(DEADLINE_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)
    started = time.monotonic()
    error = job.fails(sealpoint.TimeoutError, "before", 4, deadline=1)
    assert "rank 3 of 4 did not arrive within 1 s" in str(error), error
    assert time.monotonic() - started < DEADLINE_SECONDS - 1, "the deadline was another one"
    assert not (job.folder / "before").exists()


def one_dies_while_it_writes(job):
    if job.rank == 2:
        kill_at(job.folder / "write", "*.blob")
    job.fails((sealpoint.CommError, sealpoint.TimeoutError), "write", 3)
    assert not (job.folder / "write/COMMIT").exists()


def the_committing_one_dies(job):
    """Whether there is a checkpoint then depends on the moment; it is whole, or there is none."""
    if job.rank == 0:
        kill_at(job.folder / "commit", "*.index")
    with contextlib.suppress(sealpoint.CommError, sealpoint.TimeoutError):
        job.save("commit", 2)
    if (job.folder / "commit/COMMIT").exists():
        assert sealpoint.verify(job.folder / "commit").ok


def run(folder, rank):
    torch.set_num_threads(1)
    job = Rank(pathlib.Path(folder), rank)
    job.save("first", 4)
    for case in one_rank_cannot_write, the_index_cannot_be_written, the_disk_is_full:
        case(job)
        dist.barrier()
    job.save("after", 4)
    job.first_is_whole(4)
    one_never_comes(job)
    job.save("after 3", 3)
    one_dies_while_it_writes(job)
    job.save("after 2", 2)
    job.first_is_whole(2)
    the_committing_one_dies(job)
    assert set(sp.load_full(job.folder / "after 2")) == {"own0", "own1", "shared"}
    os._exit(0)  # the groups have lost their ranks


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]))
