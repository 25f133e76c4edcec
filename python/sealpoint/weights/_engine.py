# SPDX-License-Identifier: Apache-2.0
"""Brings versions of weights into an engine through the engine's own loader, on all its ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist

from sealpoint._arguments import Path
from sealpoint._errors import InvalidArgumentError, NotFoundError, TimeoutError
from sealpoint._rules import is_integer, is_number
from sealpoint.torch._session import session_of
from sealpoint.vllm import Verification, stored_names, verify
from sealpoint.weights import _chain
from sealpoint.weights._follower import Follower, Update

VERIFY = ("error", "allow", "off")
Weights = Iterator[tuple[str, torch.Tensor]]
_LOOK_SECONDS = 0.2  # at a version that is not there yet


class Receiver:
    """The versions of a place, for one engine. Collective: all ranks of ``process_group`` make the same calls.

    The arguments are described in docs/guides/weights_engines.md.
    """

    def __init__(
        self, place: Path, *, rename: Mapping[str, str] | None = None, verify: str = "error", timeout: float = 600.0,
        threads: int | None = None, host_folder: Path | None = None, process_group: dist.ProcessGroup | None = None,
    ) -> None:
        if verify not in VERIFY:
            raise InvalidArgumentError(f"verify is {verify!r}, expected one of {', '.join(VERIFY)}")
        if not is_number(timeout) or not 0 < timeout < 1e9:
            raise InvalidArgumentError(f"timeout is {timeout!r}, expected seconds above 0 and below 1e9")
        self.follower = Follower(place, select=list(rename or ()), threads=threads, host_folder=host_folder)
        self._rename, self._verify, self._timeout, self._group = rename, verify, timeout, process_group
        self._held: Update | None = None  # what the follower has
        self._loaded: dict[str, torch.Tensor] | None = None  # what the engine has

    def fetch(self, version: int, *, after: int | None = None, prove: bool = False) -> Update:
        """Switches the followers of all ranks to one publication of a version. If one rank fails, all ranks raise the error.

        Args:
            after: Wait until a publication with a greater sequence number is there. None: it must be there.
            prove: Compare the memory of each host with the trainer's fingerprints.
        """
        if not is_integer(version):
            raise InvalidArgumentError(f"version is {version!r}, expected an integer")
        end = time.monotonic() + self._timeout
        with session_of(self._group).call("receive weights", self.follower.place, step=version, deadline=self._timeout) as call:
            attempt = call.run_on_first(lambda: {"attempt": self._published(version, after, end)})["attempt"]
            # A leader that fails says so here, before other ranks of its host wait for it.
            call.agree(lambda: (self._take(version, attempt, 0), b""), "fetched the version")
            held, _ = call.agree(lambda: (self._must_take(version, attempt, end, prove), b""), "switched to the version")
        return held

    def _published(self, version: int, after: int | None, end: float) -> str:
        """Returns the id of the newest publication of a version. Called by one rank."""
        while True:
            try:
                entry = _chain.version_at(self.follower.place, version).entry
                if after is None or entry.sequence > after:
                    return str(entry.attempt)
            except NotFoundError:
                if after is None:
                    raise
            if time.monotonic() > end:
                raise TimeoutError(f"version {version} was not published within {self._timeout:.4g} s", path=self.follower.place)
            time.sleep(_LOOK_SECONDS)

    def _take(self, version: int, attempt: str, seconds: float) -> bool:
        """Switches to a publication. Returns False if the leader of this host, another process, does not fetch it in time."""
        end = time.monotonic() + seconds
        while self._held is None or self._held.attempt != attempt:
            try:
                self._held = self.follower.update(version, timeout=max(0.0, end - time.monotonic())) or self._held
            except TimeoutError:
                return False
            if self._held is None or self._held.attempt != attempt:  # the host has an earlier publication of this version
                if time.monotonic() > end:
                    return False
                time.sleep(_LOOK_SECONDS)
        return True

    def _must_take(self, version: int, attempt: str, end: float, prove: bool) -> Update:
        if not self._take(version, attempt, max(0.0, end - time.monotonic())) or self._held is None:
            raise TimeoutError(f"the leader of this host did not fetch attempt {attempt} of version {version} within "
                               f"{self._timeout:.4g} s", path=self.follower.place)  # fmt: skip
        if prove and self.follower.is_leader:
            self.follower.verify()
        return self._held

    def update(self, version: int, model: Any, load: Callable[[Weights], Any]) -> tuple[Update, Verification | None]:
        """Fetches a version, loads it with ``load`` on all ranks, and verifies what ``model`` holds then.

        If a rank cannot fetch the version, no rank loads it. If it cannot be loaded on one rank, or the model does not hold it
        then, all ranks load the version that the engine had.
        """
        update = self.fetch(version)
        expected = {} if self._verify == "off" else self.follower.fingerprints()
        tensors = self.follower.torch_tensors()
        try:
            with session_of(self._group).call("load weights", self.follower.place, step=version) as call:
                call.agree(lambda: (load(self._renamed(tensors)), b""), "loaded the version")
            found = None if self._verify == "off" else verify(
                model, expected, rename=self._rename, unverified="allow" if self._verify == "allow" else "error",
                process_group=self._group)  # fmt: skip
        except Exception as error:
            if self._loaded is None:
                error.add_note("The engine has no earlier version to return to.")
            else:
                load(self._renamed(self._loaded))
            raise
        self._loaded = tensors
        return update, found

    def _renamed(self, tensors: Mapping[str, torch.Tensor]) -> Weights:
        for new, stored in stored_names(list(tensors), self._rename).items():
            yield new, tensors[stored]

    def close(self) -> None:
        self._held = self._loaded = None
        self.follower.close()
