# SPDX-License-Identifier: Apache-2.0
"""What two ranks do with many tensors, with large ones and messages, and with DCP's processes; run by test_torch_pairs.py.

Bounds of time are several times what an idle machine takes: they find what has become slow by a factor.
"""

import os
import resource
import shutil
import threading
import time
import tracemalloc

import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from sealpoint.torch.dcp import StorageWriter
from torch.distributed.checkpoint.api import CheckpointException

MIB = 1 << 20


def seconds(call):
    dist.barrier()
    started = time.monotonic()
    call()
    dist.barrier()
    return time.monotonic() - started


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def case_many_small_tensors(job):
    """10,000 tensors of 4 KiB and 2,000 numbers that both ranks hold."""
    before = peak_mib()
    state = {"t": {str(i): torch.full((1024,), float(i)) for i in range(10_000)}, "n": {str(i): i / 2 for i in range(2000)}}
    assert seconds(lambda: sp.save(state, job.path("c"))) < 3
    back = {"t": {name: torch.zeros(1024) for name in state["t"]}, "n": dict.fromkeys(state["n"], 0.0)}
    assert seconds(lambda: sp.load(back, job.path("c"))) < 3
    assert back["n"] == state["n"]
    assert all(torch.equal(back["t"][name], tensor) for name, tensor in state["t"].items())
    (index,) = job.path("c").glob("*.index")
    assert index.stat().st_size < 1.5e6
    with sealpoint.open(job.path("c")) as checkpoint:
        assert list(checkpoint.objects) == ["sealpoint.tree"]
    # 80 MiB are the two states.
    assert peak_mib() - before < 400, f"{before:.0f} MiB before, {peak_mib():.0f} MiB at most"


def case_large_tensors(job):
    """Beside DCP, in alternating rounds. Nothing is copied in Python, and a thread of Python goes on meanwhile."""
    state = {f"{job.rank}.{i}": torch.rand(8 * MIB) for i in range(2)}
    back = {name: torch.zeros_like(tensor) for name, tensor in state.items()}
    ours, theirs = [], []
    for number in range(3):
        ours.append(seconds(lambda number=number: sp.save(state, job.path(f"c{number}"))))
        theirs.append(seconds(lambda number=number: dcp.save(state, checkpoint_id=job.path(f"dcp{number}"))))
        if job.rank == 0:
            shutil.rmtree(job.path(f"dcp{number}"))
    assert min(ours) < min(theirs), (ours, theirs)
    gaps = [0.0]
    stop = threading.Event()

    def look():
        last = time.monotonic()
        while not stop.wait(0.001):
            last, passed = time.monotonic(), time.monotonic() - last
            gaps.append(passed)

    tracemalloc.start()
    thread = threading.Thread(target=look)
    thread.start()
    try:
        sp.save(state, job.path("traced"))
        sp.load(back, job.path("traced"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        stop.set()
        thread.join()
        tracemalloc.stop()
    assert peak < 2 * MIB, f"{peak} B"
    assert all(torch.equal(back[name], tensor) for name, tensor in state.items())
    assert len(gaps) > 20, "a thread of Python stood still"


def case_messages_beyond_two_gibibytes(job):
    """And beyond 32 bits of signed lengths."""
    comm = sp.TorchCommunicator()
    comm.set_deadline(60)
    size = int(2.3 * (1 << 30))
    message = bytearray(size) if job.rank == 1 else b"short"
    if job.rank == 1:
        message[0], message[-1] = 7, 9
    received = comm.gather(message, 0)
    if job.rank == 0:
        own, other = received
        assert bytes(own) == b"short"
        assert (len(other), other[0], other[-1]) == (size, 7, 9)


def case_in_the_process_of_dcp(job):
    """Saves of DCP in a process of their own: the first starts it; after a failed one it goes on."""
    from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

    os.environ.setdefault("MASTER_ADDR", "localhost")
    own = dist.new_group(backend="gloo")
    tensor = torch.zeros(1000)

    def save(name, value):
        tensor.fill_(value)
        state = {f"own{job.rank}": tensor, "step": value}
        started = time.monotonic()
        future = dcp.async_save(state, storage_writer=StorageWriter(job.path(name)), process_group=own,
                                async_checkpointer_type=AsyncCheckpointerType.PROCESS)
        passed = time.monotonic() - started
        tensor.fill_(-1)
        return future, passed

    save("first", 1)[0].result(timeout=120)
    future, passed = save("second", 2)
    assert passed < 2, f"{passed:.2f} s"
    future.result(timeout=60)
    try:
        save("first", 3)[0].result(timeout=60)
    except CheckpointException as failure:  # no Exception
        assert "AlreadyExists" in str(failure), failure
    else:
        raise AssertionError("a checkpoint was saved over another")
    save("third", 4)[0].result(timeout=60)
    for name, value in ("first", 1), ("second", 2), ("third", 4):
        full = sp.load_full(job.path(name))
        assert full["step"] == value
        assert torch.equal(full["own1"], torch.full((1000,), float(value)))
