# SPDX-License-Identifier: Apache-2.0
"""Private connections between ranks: gloo groups unknown to torch.distributed.

torch.distributed.new_group cannot be used. Either all ranks of the job must call this function, or it derives the group's name from
the number of groups in the process.
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

# Larger groups are connected as a grid: a full mesh has n² connections, and n - 1 descriptors per rank.
MESH_RANKS_MAX = 256
# Timeout for connecting, counted from the time when all ranks have arrived.
CONNECT_SECONDS = 60.0
# Time by which gloo's own connection timeout exceeds the timeout of _wait.
GLOO_GRACE_SECONDS = 5.0
# Descriptors of a group in addition to its connections, and a reserve for the process.
_SPARE_DESCRIPTORS = 32
_ADDRESSES_MAX = 8
T = TypeVar("T")

# Runs one call of a group with its options. An exception ends the call early.
Run = Callable[[Any, Callable[[Any], Any]], None]


class Links(Protocol):
    """Collectives of a communicator on host tensors. All ranks make the same calls in the same order."""

    def barrier(self, run: Run) -> None: ...

    def all_reduce_max(self, run: Run, tensor: torch.Tensor) -> None: ...

    def broadcast(self, run: Run, tensor: torch.Tensor, root: int) -> None: ...

    def all_gather(self, run: Run, tensor: torch.Tensor) -> torch.Tensor:
        """Gathers one-dimensional tensors of equal size. Returns one row per rank."""

    def all_to_all(self, run: Run, outgoing: torch.Tensor, sent: Sequence[int], received: Sequence[int]) -> torch.Tensor:
        """Sends one part of ``outgoing`` to each rank. ``sent`` has the size of each part.

        The result contains the received parts in the order of the ranks.
        """


class Mesh:
    """Connects each rank to every other rank."""

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
    """Arranges the ranks in rows and connects each rank to all ranks in its row and in its column.

    A message to any other rank is forwarded by the rank in the sender's row and the receiver's column.
    """

    def __init__(self, row: Mesh, column: Mesh, place: tuple[int, int], shape: tuple[int, int]) -> None:
        """Creates a grid. ``place`` is this rank's (row, column). ``shape`` is (number of rows, number of columns)."""
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
        # Sizes of the messages from each rank of this row to each rank of this column.
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
    """Returns the row length that minimizes the number of connections per rank.

    If ``size`` is prime, returns ``size``, and a mesh is used.
    """
    if size <= MESH_RANKS_MAX:
        return size
    return size // max(rows for rows in range(1, math.isqrt(size) + 1) if size % rows == 0)


def make_links(name: str, rank: int, size: int, end: float, check: Callable[[], None]) -> Links:
    """Connects all ranks that pass the same unique name. Calls ``check`` while it waits.

    Raises CommError, and TimeoutError, which names the absent ranks or the addresses of unreachable ranks.
    """
    columns = _columns_of(size)
    rows = size // columns
    _check_descriptors(size, columns - 1 + rows - 1)
    came, look = [f"came{item}" for item in range(size)], look_max_seconds(size)
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
            raise CommError(f"{store.get('gone').decode()} stopped connecting", rank=rank)

    def text(all_came: str) -> str:
        return text_of_absent(PrefixStore(name, own_store()), came, all_came)

    try:
        _wait(wait_for_all, end, check, lambda: text("the store does not confirm that all ranks arrived"), rank, look)
    except BaseException:
        stop.set()
        with contextlib.suppress(Error):  # prevents a late rank from trying to connect
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
        return text(f"{size} ranks arrived, but could not connect within {seconds:.4g} s; {where}")

    return _wait(connect, connect_end, check, text_of_connect, rank, look)


def _wait(
    call: Callable[[], T], end: float, check: Callable[[], None], text: Callable[[], str], rank: int, look: float
) -> T:
    """Returns the result of call(), or fails at the time ``end``. While it waits, it calls check() every ``look`` seconds.

    Raises TimeoutError with text(), CommError, and the errors of check().
    """
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
    # gloo's timeout is longer than the timeout of _wait, because the error of _wait contains the addresses.
    timeout = datetime.timedelta(seconds=max(0.0, end - time.monotonic()) + GLOO_GRACE_SECONDS)
    return Mesh(ProcessGroupGloo(PrefixStore(name, own_store()), rank, size, timeout))


def _address() -> str:
    """Returns the address on which gloo listens, determined in the same way as gloo does."""
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
        "gloo listens at the address of the host name, or at the network interface in GLOO_SOCKET_IFNAME: "
        f"{', '.join(said)}{more}; set GLOO_SOCKET_IFNAME to the interface that connects the ranks"
    )


def _check_descriptors(size: int, connections: int) -> None:
    """Raises CommError if the process has too few file descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    needed = used + connections + _SPARE_DESCRIPTORS
    if limit not in (resource.RLIM_INFINITY, -1) and needed > limit:
        raise CommError(
            f"a group of {size} ranks needs {connections} connections on each, but this process may open {limit} files, and "
            f"has {used} open; raise the limit before it starts: ulimit -n {1 << (needed + connections).bit_length()}"
        )
