# SPDX-License-Identifier: Apache-2.0
"""The session of the jax.distributed processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sealpoint._ranks.session import Session, Sessions, tells_ranks
from sealpoint.jax._communicator import STORE_NAME, JaxCommunicator, client_of_store
from sealpoint.jax._jax import distributed, jax

_PREFIX = "sealpoint"


class _Processes:
    """The processes of jax.distributed; see ``_ranks.rendezvous.Group``.

    A JAX communicator needs no connections, because all its processes already share the key-value store.
    """

    store_name = STORE_NAME

    def __init__(self) -> None:
        self.rank, self.size = jax.process_index(), jax.process_count()

    def forget_connection(self) -> None:
        pass  # the client has its own deadline

    def put(self, key: str, value: str) -> None:
        try:
            client_of_store().key_value_set_bytes(f"{_PREFIX}/{key}", value.encode())
        except jax.errors.JaxRuntimeError:
            if self.get(key) is None:
                raise

    def get(self, key: str) -> str | None:
        try:
            return str(client_of_store().key_value_try_get_bytes(f"{_PREFIX}/{key}").decode())
        except jax.errors.JaxRuntimeError as error:
            if "NOT_FOUND" in str(error):
                return None
            raise

    def connect(self, generation: int, end: float, check: Callable[[], None]) -> JaxCommunicator:
        return JaxCommunicator(f"{_PREFIX}/{generation}")


def _job() -> Any:
    """Returns an identifier of the job, or None for a single process. Calls no JAX functions that would initialize devices."""
    return client_of_store() if (distributed.global_state.num_processes or 1) > 1 else None


_sessions = Sessions(_job)


def session() -> Session:
    """Returns the session of this process. Raises InvalidArgumentError in a forked child of a multi-process job."""
    job = _job()

    def make() -> Session:
        return Session(None if job is None else _Processes(), lambda: 1 if job is None else int(jax.process_count()))

    return _sessions.get(job, make, is_alone=job is None)


tells_other_processes = tells_ranks(lambda keywords: session())
