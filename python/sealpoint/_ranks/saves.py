# SPDX-License-Identifier: Apache-2.0
"""Functions that save states after the ranks have compared their states."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

from sealpoint import _sealpoint
from sealpoint._arguments import Path, attributes_of, provenance_of
from sealpoint._options import SaveOptions, StoreOptions
from sealpoint._ranks.promotions import watch, watch_save
from sealpoint._ranks.session import Session
from sealpoint._save import parent_of
from sealpoint._save_future import SaveFuture


class Held(Protocol):
    """The part of a state that a rank holds."""

    state: _sealpoint.RankState
    # Result of ``digest_of`` for all ranks. None: unknown; the library then compares the declarations.
    declarations: str | None


def digest_of(declarations: Iterable[bytes]) -> str:
    """Returns one digest of the declarations of all ranks. ``declarations`` has the digest of each rank, in rank order."""
    return hashlib.blake2b(b"".join(declarations), digest_size=16).hexdigest()


def frozen_patterns(options: StoreOptions) -> Sequence[str]:
    """Returns the patterns in the option ``frozen``."""
    return () if isinstance(options.frozen, str) else options.frozen


def rank_state(slots: list[_sealpoint.Slot], options: StoreOptions) -> _sealpoint.RankState:
    """Declares the slots of a rank to the library."""
    patterns = frozen_patterns(options)
    frozen = {slot.name for slot in slots if any(fnmatch.fnmatchcase(slot.name, pattern) for pattern in patterns)}
    encoding = _sealpoint.Encoding(options.codec, options.codec_level, options.chunk_size_bytes)
    return _sealpoint.RankState(slots, encoding, frozen)


def _staged(options: SaveOptions) -> Path | None:
    """Returns the local directory of a staged save, or None."""
    staged: Path | None = getattr(options, "staged", None)
    return staged


def _request(
    held: Held, path: Path, options: SaveOptions
) -> tuple[_sealpoint.SaveTarget, _sealpoint.RankState, _sealpoint.SaveOptions]:
    target = _sealpoint.SaveTarget(path, options.series, parent_of(options.parent), _staged(options))
    return target, held.state, _sealpoint.SaveOptions(
        step=options.step,
        provenance=provenance_of(options.provenance),
        allow_empty=options.allow_empty,
        allow_fallback=options.allow_fallback,
        declarations=held.declarations,
        attributes=attributes_of(options.attributes),
    )


# The base of a delta: its directory, and its bytes in host memory, of the same declaration as what is saved.
Base = tuple[str, _sealpoint.RankState]


def save(session: Session, held: Held, path: Path, options: SaveOptions, base: Base | None = None) -> _sealpoint.CommitInfo:
    """Saves within a collective call that has begun. Collective. Uses the memory of ``held`` until this function returns."""
    saver = session.saver(options)
    info = saver.save(*_request(held, path, options), base)
    if _staged(options) is not None:
        watch(saver)
    return info


def save_async(session: Session, held: Held, path: Path, options: SaveOptions, text: str) -> SaveFuture:
    """Saves as ``save`` does, but returns once the state is copied. ``text`` describes the call."""
    saver = session.saver(options)
    pending = saver.save_async(*_request(held, path, options))
    is_staged = _staged(options) is not None

    def end(error: BaseException | None) -> None:
        if error is not None:
            session.note_failure(saver, error)
        elif is_staged:
            watch(saver)

    future = SaveFuture(pending, saver, text, end)
    if is_staged:
        watch_save(future)
    return future
