# SPDX-License-Identifier: Apache-2.0
"""Functions that load pytrees."""

from __future__ import annotations

from typing import Any, Unpack

from sealpoint import _sealpoint
from sealpoint._arguments import threads_of
from sealpoint._checkpoint import Path
from sealpoint._keywords import takes
from sealpoint._ranks.arguments import checked_call
from sealpoint._ranks.loads import open_reader, read_tree, values_of_rank
from sealpoint.jax._options import LoadKeywords, LoadOptions
from sealpoint.jax._session import session, tells_other_processes
from sealpoint.jax._state import Matched


@tells_other_processes
@takes(LoadKeywords, LoadOptions)
def load(path: Path, like: Any, **options: Unpack[LoadKeywords]) -> Any:
    """Loads a pytree with the structure of ``like``. Collective: all processes call it.

    Any number of processes and devices may have saved the checkpoint, with JAX, torch or any other program. The arrays get the
    requested shardings. Each process reads each box of its devices only once, and every byte is verified. Arrays on the CPU use the
    memory into which the data was read; for other devices the data is copied to the device.

    Args:
        path: Directory or URL of the checkpoint.
        like: Pytree of the expected structure. Its leaves are JAX arrays, ``jax.ShapeDtypeStruct`` with a sharding, numpy arrays,
            ``jax.random`` keys, and values of the expected types. ``jax.eval_shape`` creates such structs without memory for the
            arrays. If a leaf has no sharding, its array is placed on the first device of this process.
        partial: Allow the checkpoint to have names that ``like`` does not have.
        convert: "exact" converts elements to the dtype of ``like`` if this dtype represents each value; "nearest"
            rounds to nearest even. By default, a different dtype is an error.
        allow_pickle, deadline, memory_budget_bytes: As for ``sealpoint.torch.save``.
        threads: As for ``sealpoint.torch.load``.
        progress: As for ``sealpoint.Checkpoint.read``.

    Returns:
        The pytree with the stored values.

    Raises:
        MismatchError: a name is missing or unexpected, or a value differs in dtype, shape or kind. The error names the value.
        CorruptError: a digest does not match.
        TimeoutError: a process did not answer within ``deadline``.
        CommError: the communication between processes failed.
        Error: as for ``sealpoint.open``.

    Errors are the same on all processes.

    Examples:
        >>> import jax.numpy, sealpoint.jax as sp
        >>> _ = sp.save({"w": jax.numpy.ones(2)}, "checkpoint")
        >>> sp.load("checkpoint", {"w": jax.numpy.zeros(2)})["w"].sum()
        Array(2., dtype=float32)
    """
    chosen = LoadOptions(**options)
    with checked_call(session(), "load", path, chosen) as call:
        reader = open_reader(call, path, chosen.memory_budget_bytes)
        node = read_tree(reader)

        def match() -> tuple[Matched, bytes]:
            return Matched(like, node, values_of_rank(reader, node, call.rank), call.size, chosen), b""

        matched, _ = call.agree(match, "compared their states with the checkpoint")
        reader.load(
            slots=matched.slots,
            contract=_sealpoint.LoadContract(dtype="error", shape="error", coverage="error"),
            convert=chosen.convert,
            threads=threads_of(chosen.threads),
            memory_budget_bytes=chosen.memory_budget_bytes,
            share_chunks=False,  # payload does not pass through the store
            progress=chosen.progress,
        )
        state, _ = call.agree(lambda: (matched.state(), b""), "set the values of their states")
        return state
