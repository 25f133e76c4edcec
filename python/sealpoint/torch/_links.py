# SPDX-License-Identifier: Apache-2.0
"""Connections between ranks: groups of gloo that torch knows nothing of.

torch.distributed.new_group is for all ranks of the job, or names the group by how many others the process has.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import torch
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    PrefixStore,
    ProcessGroupGloo,
    ReduceOp,
)

from sealpoint._errors import CommError, Error, TimeoutError
from sealpoint._ranks.background import BackgroundCall, run_with_deadline
from sealpoint._ranks.rendezvous import STORE_SECONDS
from sealpoint.torch._store import LOOK_FIRST_SECONDS, STORE_NAME, look_max_seconds, own_store, text_of_absent

# More ranks are connected as a grid: each to all others has n² connections, and n - 1 descriptors on each rank.
MESH_RANKS_MAX = 256
# From when all ranks came.
CONNECT_SECONDS = 60.0
# Descriptors of a group beside its connections, and some that the process may open meanwhile.
_SPARE_DESCRIPTORS = 32
_ADDRESSES_MAX = 8
T = TypeVar("T")

# Runs one call of a group, by its options; what ends it early is an exception.
Run = Callable[[Any, Callable[[Any], Any]], None]


class Links(Protocol):
    """What a communicator does with tensors of the host. All ranks call the same, in the same order."""

    def barrier(self, run: Run) -> None: ...

    def all_reduce_max(self, run: Run, tensor: torch.Tensor) -> None: ...

    def broadcast(self, run: Run, tensor: torch.Tensor, root: int) -> None: ...

    def all_gather(self, run: Run, tensor: torch.Tensor) -> torch.Tensor:
        """One row for each rank, of tensors of one dimension and the same size."""

    def all_to_all(self, run: Run, outgoing: torch.Tensor, sent: Sequence[int], received: Sequence[int]) -> torch.Tensor:
        """``sent``: how much of one dimension goes to each rank, one after the other. So is what is returned."""


class Mesh:
    """Each rank is connected to each other one."""

    def __init__(self, group: Any) -> None:
        self._group, self._size = group, int(group.size())

    def barrier(self, run: Run) -> None:
        run(BarrierOptions(), lambda options: self._group.barrier(options))

    def all_reduce_max(self, run: Run, tensor: torch.Tensor) -> None:
        options = AllreduceOptions()
        options.reduceOp = ReduceOp(ReduceOp.MAX)
        run(options, lambda options: self._group.allreduce([tensor], options))

    def broadcast(self, run: Run, tensor: torch.Tensor, root: int) -> None:
        options = BroadcastOptions()
        options.rootRank = root
        options.rootTensor = 0
        run(options, lambda options: self._group.broadcast([tensor], options))

    def all_gather(self, run: Run, tensor: torch.Tensor) -> torch.Tensor:
        rows = torch.empty((self._size, tensor.numel()), dtype=tensor.dtype)
        run(AllgatherOptions(), lambda options: self._group.allgather([list(rows.unbind())], [tensor], options))
        return rows

    def all_to_all(self, run: Run, outgoing: torch.Tensor, sent: Sequence[int], received: Sequence[int]) -> torch.Tensor:
        incoming = torch.empty(sum(received), dtype=outgoing.dtype)
        run(
            AllToAllOptions(),
            lambda options: self._group.alltoall_base(incoming, outgoing, list(received), list(sent), options),
        )
        return incoming


class Grid:
    """Ranks in rows, one after the other: each is connected to those of its row and of its column. What goes to another one
    passes through the rank of its own row that is in the other's column."""

    def __init__(self, row: Mesh, column: Mesh, place: tuple[int, int], shape: tuple[int, int]) -> None:
        """``place``: number of the row and of the column. ``shape``: how many of each."""
        self._row, self._column = row, column
        self._place, self._shape = place, shape

    def barrier(self, run: Run) -> None:
        self._row.barrier(run)
        self._column.barrier(run)

    def all_reduce_max(self, run: Run, tensor: torch.Tensor) -> None:
        self._row.all_reduce_max(run, tensor)
        self._column.all_reduce_max(run, tensor)

    def broadcast(self, run: Run, tensor: torch.Tensor, root: int) -> None:
        row, column = divmod(root, self._shape[1])
        if self._place[1] == column:
            self._column.broadcast(run, tensor, row)
        self._row.broadcast(run, tensor, column)

    def all_gather(self, run: Run, tensor: torch.Tensor) -> torch.Tensor:
        of_row = self._row.all_gather(run, tensor)
        return self._column.all_gather(run, of_row.reshape(-1)).reshape(-1, tensor.numel())

    def all_to_all(self, run: Run, outgoing: torch.Tensor, sent: Sequence[int], received: Sequence[int]) -> torch.Tensor:
        rows, columns = self._shape
        to = torch.tensor(sent, dtype=torch.int64).reshape(rows, columns)
        # What each rank of the row sends to each row, of what goes to ranks of this column.
        numbers = self._row.all_to_all(run, to.t().reshape(-1), [rows] * columns, [rows] * columns)
        passing = numbers.reshape(columns, rows)
        parts = torch.split(outgoing, list(sent))
        by_column = [parts[row * columns + column] for column in range(columns) for row in range(rows)]
        middle = self._row.all_to_all(run, torch.cat(by_column), to.sum(0).tolist(), passing.sum(1).tolist())
        parts = torch.split(middle, passing.reshape(-1).tolist())
        by_row = [parts[column * rows + row] for row in range(rows) for column in range(columns)]
        come = torch.tensor(received, dtype=torch.int64).reshape(rows, columns)
        return self._column.all_to_all(run, torch.cat(by_row), passing.sum(0).tolist(), come.sum(1).tolist())


def _columns_of(size: int) -> int:
    """All ranks for a mesh; else the ones of a row that let each rank have the fewest connections. (Of a prime: a mesh.)"""
    if size <= MESH_RANKS_MAX:
        return size
    return size // max(rows for rows in range(1, math.isqrt(size) + 1) if size % rows == 0)


def make_links(name: str, rank: int, size: int, end: float, check: Callable[[], None]) -> Links:
    """Those between all who give the same name, which nobody gave before. ``check`` is called meanwhile.

    Errors: TimeoutError (names the ranks that did not come, or where those are that cannot be connected), CommError.
    """
    columns = _columns_of(size)
    rows = size // columns
    _check_descriptors(size, columns - 1 + rows - 1)
    came, look = [f"came{one}" for one in range(size)], look_max_seconds(size)
    stop = threading.Event()

    def wait_for_all() -> None:
        store = PrefixStore(name, own_store())
        store.set(came[rank], _address())
        if store.add("count", 1) == size:
            store.set("all", "")
        pause = LOOK_FIRST_SECONDS
        while not store.check(["all"]) and not stop.wait(pause):
            pause = min(2 * pause, look)
        if store.check(["gone"]):
            raise CommError(f"{store.get('gone').decode()} gave up to make these groups", rank=rank)

    def text(all_came: str) -> str:
        return text_of_absent(PrefixStore(name, own_store()), came, all_came)

    try:
        _wait(wait_for_all, end, check, lambda: text("the store does not say that all ranks came"), rank, look)
    except BaseException:
        stop.set()
        with contextlib.suppress(Error):  # so that one who comes later does not try to connect
            run_with_deadline(lambda: PrefixStore(name, own_store()).set("gone", f"rank {rank}"), STORE_SECONDS, STORE_NAME)
        raise
    seconds = min(CONNECT_SECONDS, end - time.monotonic())
    connect_end = time.monotonic() + seconds

    def connect() -> Links:
        if rows == 1:
            return _group(name, rank, size, connect_end)
        row, column = divmod(rank, columns)
        of_row = _group(f"{name}row{row}/", column, columns, connect_end)
        return Grid(of_row, _group(f"{name}column{column}/", row, rows, connect_end), (row, column), (rows, columns))

    def text_of_connect() -> str:
        where = _where(PrefixStore(name, own_store()), came)
        return text(f"{size} ranks came to make their groups, but could not connect within {seconds:.4g} s; {where}")

    return _wait(connect, connect_end, check, text_of_connect, rank, look)


def _wait(
    call: Callable[[], T], end: float, check: Callable[[], None], text: Callable[[], str], rank: int, look: float
) -> T:
    """What call() returns, by the end; after each ``look`` seconds check() is called. Errors: TimeoutError (what text() says),
    CommError; those of check()."""
    made = BackgroundCall(call)
    while not made.wait(min(look, max(0.0, end - time.monotonic()) + 0.001)):
        check()
        if time.monotonic() > end:
            raise TimeoutError(run_with_deadline(text, STORE_SECONDS, STORE_NAME), rank=rank)
    try:
        return made.result()
    except RuntimeError as error:
        check()
        if time.monotonic() > end:
            raise TimeoutError(run_with_deadline(text, STORE_SECONDS, STORE_NAME), rank=rank) from error
        raise CommError(f"gloo: {' '.join(str(error).split())}", rank=rank) from error


def _group(name: str, rank: int, size: int, end: float) -> Mesh:
    timeout = datetime.timedelta(seconds=max(0.001, end - time.monotonic()))
    return Mesh(ProcessGroupGloo(PrefixStore(name, own_store()), rank, size, timeout))


def _address() -> str:
    """Where gloo listens, as it finds that out."""
    host, interface = socket.gethostname(), os.environ.get("GLOO_SOCKET_IFNAME", "")
    if interface:
        return f"{interface} of {host}"
    try:
        return f"{socket.gethostbyname(host)} of {host}"
    except OSError as error:
        return f"no address of {host}: {error}"


def _where(store: Any, came: Sequence[str]) -> str:
    said = [f"rank {rank} at {store.get(key).decode(errors='replace')}" for rank, key in enumerate(came[:_ADDRESSES_MAX])]
    more = f" and {len(came) - len(said)} more" if len(came) > len(said) else ""
    return (
        f"gloo listens where the host name leads to, or at the network interface that GLOO_SOCKET_IFNAME names: "
        f"{', '.join(said)}{more}; set GLOO_SOCKET_IFNAME to the interface by which the ranks reach each other"
    )


def _check_descriptors(size: int, connections: int) -> None:
    """Errors: CommError."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    needed = used + connections + _SPARE_DESCRIPTORS
    if limit not in (resource.RLIM_INFINITY, -1) and needed > limit:
        raise CommError(
            f"a group of {size} ranks needs {connections} connections on each, but this process may open {limit} files, and "
            f"has {used} open; raise the limit before it starts: ulimit -n {1 << (needed + connections).bit_length()}"
        )
