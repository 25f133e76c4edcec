# SPDX-License-Identifier: Apache-2.0
"""What it takes to connect the ranks of a job on one machine: connect.py RANKS [MESH_RANKS_MAX]

Each rank is a process, forked from one that has imported torch. Prints the slowest rank's seconds, and the descriptors that a
rank has open. With MESH_RANKS_MAX (see sealpoint/torch/_links.py) above RANKS they are a mesh.
"""

import datetime
import os
import socket
import sys
import time
import traceback

from sealpoint._ranks.rendezvous import Rendezvous
from sealpoint.torch import _communicator, _links, _rendezvous
from torch._C._distributed_c10d import TCPStore

LIMIT_SECONDS = 900.0
# So many on few cores.
_links.CONNECT_SECONDS = LIMIT_SECONDS
_communicator._LOOK_EVERY = datetime.timedelta(seconds=20)


def timed(call):
    began = time.monotonic()
    result = call()
    return time.monotonic() - began, result


def be(rank, size, port, say):
    """Exchanges once to come together, and then measures."""
    store = TCPStore("127.0.0.1", port, is_master=False)
    _rendezvous.own_store = _links.own_store = lambda: store
    before = len(os.listdir("/proc/self/fd"))
    group = _communicator.GlooGroup("scale", rank, size)
    met, (comm, _) = timed(lambda: Rendezvous(group).connect(0, "", LIMIT_SECONDS))
    comm.set_deadline(LIMIT_SECONDS)
    comm.barrier()
    gathered, found = timed(lambda: comm.all_gather(bytes([rank % 256]) * 40))
    assert [bytes(item) for item in found] == [bytes([item % 256]) * 40 for item in range(size)]
    exchanged, found = timed(lambda: comm.all_to_all([bytes([rank % 256, to % 256]) for to in range(size)]))
    assert [bytes(item) for item in found] == [bytes([item % 256, rank % 256]) for item in range(size)]
    descriptors = len(os.listdir("/proc/self/fd")) - before
    os.write(say, f"{met} {gathered} {exchanged} {descriptors}\n".encode())
    comm.barrier()


def fork_all(size, server, say):
    for rank in range(size):
        if os.fork() == 0:
            try:
                server.close()
                be(rank, size, PORT, say)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)


size = int(sys.argv[1])
if len(sys.argv) > 2:
    _links.MESH_RANKS_MAX = int(sys.argv[2])
server = socket.create_server(("127.0.0.1", 0), backlog=4096)
PORT = server.getsockname()[1]
heard, say = os.pipe()
fork_all(size, server, say)
os.close(say)
store = TCPStore("127.0.0.1", PORT, is_master=True, wait_for_workers=False, master_listen_fd=server.detach())
with open(heard) as answers:
    rows = [[float(item) for item in line.split()] for line in answers]
shape = _links._columns_of(size)
print(f"{len(rows)} of {size} ranks, {size // shape} x {shape}")
names = "connect, s", "all_gather of 40 bytes, s", "all_to_all of 2 bytes, s", "descriptors"
for name, column in zip(names, zip(*rows, strict=True), strict=True):
    print(f"{name}: {max(column):.3g}")
