# SPDX-License-Identifier: Apache-2.0
"""Loading pytrees."""

from __future__ import annotations

from typing import Any, Unpack

from sealpoint import _sealpoint
from sealpoint._arguments import load_threads
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
    """Returns a pytree of the structure of ``like``, with the stored values. All processes call it.

    What was saved by any number of processes and devices, by JAX, torch or another program, is loaded in the shardings that
    are asked for. Each process reads the boxes of its devices, once, and every byte is verified. On the CPU the memory that
    was read becomes that of the arrays; for other devices it is copied there.

    Args:
        like: a pytree of arrays, or of ``jax.ShapeDtypeStruct`` with a sharding (``jax.eval_shape`` makes them without
            memory), arrays of numpy, keys, and values of the type that is expected. Without a sharding: the first device of
            this process.
        partial: stored places that ``like`` does not have are left out, and not an error.
        convert: dtypes may differ: "exact" takes values that fit, "nearest" rounds. None: they are errors.
        allow_pickle, threads, memory_budget_bytes, deadline, progress: as for ``sealpoint.torch.load``.

    Errors, the same on all processes: MismatchError (missing, unexpected, dtype, shape, kind; names it), those of opening,
    CorruptError, TimeoutError, CommError.
    """
    chosen = LoadOptions(**options)
    with checked_call(session(), "load", path, chosen, same=("partial", "convert", "deadline")) as call:
        reader = open_reader(call, path, chosen.memory_budget_bytes)
        node = read_tree(reader)

        def match() -> tuple[Matched, bytes]:
            return Matched(like, node, values_of_rank(reader, node, call.rank), call.size, chosen), b""

        matched, _ = call.agree(match, "compared their states with the checkpoint")
        reader.load(
            slots=matched.slots,
            contract=_sealpoint.LoadContract(dtype="error", shape="error", coverage="error"),
            convert=chosen.convert,
            threads=load_threads(chosen.threads),
            memory_budget_bytes=chosen.memory_budget_bytes,
            share_chunks=False,  # payload does not pass through the store
            progress=chosen.progress,
        )
        state, _ = call.agree(lambda: (matched.state(), b""), "set the values of their states")
        return state
