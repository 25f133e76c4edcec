# SPDX-License-Identifier: Apache-2.0
"""Saving pytrees."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

from sealpoint import _sealpoint
from sealpoint._arguments import check, path_of, provenance_of
from sealpoint._checkpoint import Path
from sealpoint._errors import InvalidArgumentError
from sealpoint._keywords import takes
from sealpoint._options import SAVE_BUDGET_MIN_BYTES
from sealpoint._save import parent_of
from sealpoint._save_future import SaveFuture
from sealpoint.jax._options import SaveAsyncKeywords, SaveKeywords, SaveOptions
from sealpoint.jax._session import Session, session, tells_other_processes
from sealpoint.jax._state import collect


class _Prepared(NamedTuple):
    session: Session
    saver: _sealpoint.Saver
    text: str
    arguments: dict[str, Any]  # of the saver's functions


def _check_own(options: SaveOptions) -> None:
    if isinstance(options.frozen, str) and options.frozen != "learned":
        raise InvalidArgumentError(f"frozen is {options.frozen!r}, expected a sequence of patterns of names, or 'learned'")
    budget = options.memory_budget_bytes
    if budget is not None and budget < SAVE_BUDGET_MIN_BYTES:
        raise InvalidArgumentError(f"memory_budget_bytes is {budget}, expected at least {SAVE_BUDGET_MIN_BYTES} for a save")


@contextlib.contextmanager
def _prepared(kind: str, state: Any, path: Path, options: SaveOptions) -> Iterator[_Prepared]:
    """Owns what the memory of the state is borrowed from, until the save returns."""
    where, problem, parent, provenance = str(path), None, None, provenance_of(None)
    try:
        check(step=options.step, series=options.series, parent=options.parent, codec=options.codec,
              codec_level=options.codec_level, chunk_size_bytes=options.chunk_size_bytes, allow_empty=options.allow_empty,
              allow_fallback=options.allow_fallback)
        _check_own(options)
        where, parent, provenance = path_of(path), parent_of(options.parent), provenance_of(options.provenance)
    except Exception as error:  # the other processes hear of it in the first exchange, and do not wait
        problem = error
    text = f"{kind}{'' if options.step is None else f' of step {options.step}'} {where!r}"
    same = (options.series, options.compare_replicas, options.allow_empty, options.allow_fallback, options.deadline,
            options.background_deadline, options.frozen, options.full_every)
    mine = session()
    with mine.call(text, same, options.deadline) as call:
        collected = collect(state, call, options.allow_pickle, problem)
        arguments = {
            "target": (where, options.series, parent),
            "state": collected.state(options, call.rank),
            "step": options.step,
            "mesh": [],
            "provenance": provenance,
            "allow_empty": options.allow_empty,
            "allow_fallback": options.allow_fallback,
            "local": None,
        }
        yield _Prepared(mine, mine.saver(options), text, arguments)


@tells_other_processes
@takes(SaveKeywords, SaveOptions)
def save(state: Any, path: Path, **options: Unpack[SaveKeywords]) -> _sealpoint.CommitInfo:
    """Saves a pytree of all processes as one checkpoint, which is durable when this returns. All processes call it.

    Several processes are those of ``jax.distributed``; without it, the devices of this one are all.

    Args:
        state: a pytree of arrays of JAX in any sharding, arrays of numpy, keys of ``jax.random``, numbers, strings and
            other small values. The same structure on all processes. Names of tensors are the paths of their leaves, joined
            by dots, as ``sealpoint.torch`` has them. What several devices hold is stored once; ``per_rank`` marks values
            that differ by process. Arrays on GPUs and TPUs are copied to the host first.
        path: the new checkpoint's directory, made if it is missing; with ``series`` the directory of the series.
        series, step, parent, provenance, codec, codec_level, chunk_size_bytes, allow_empty, allow_fallback: as for
            ``sealpoint.save``.
        compare_replicas, allow_pickle, frozen, full_every, deadline, memory_budget_bytes: as for ``sealpoint.torch.save``.

    Errors, the same on all processes: InvalidArgumentError, UnsupportedError (a value of another type, a dtype such as int4;
    names its path), AlreadyExistsError, NoSpaceError, IoError, TimeoutError, CommError. There is no such checkpoint then,
    unless ``unknown_outcome``.
    """
    with _prepared("save", state, path, SaveOptions(**options)) as prepared:
        return prepared.saver.save(**prepared.arguments)


@tells_other_processes
@takes(SaveAsyncKeywords, SaveOptions)
def save_async(state: Any, path: Path, **options: Unpack[SaveAsyncKeywords]) -> SaveFuture:
    """As ``save``, but returns when the state is copied: its arrays may be donated at once, and training goes on meanwhile.

    Errors of the arguments, and of processes that disagree, are raised here; all others come from the future.

    Args:
        background_deadline: seconds that the save may take once this returned; None: no limit.
    """
    with _prepared("save_async", state, path, SaveOptions(**options)) as prepared:
        pending = prepared.saver.save_async(**prepared.arguments)
        mine, saver = prepared.session, prepared.saver

        def end(error: BaseException | None) -> None:
            if error is not None:
                mine.note_failure(saver, error)

        return SaveFuture(pending, saver, prepared.text, end)
