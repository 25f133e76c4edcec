# SPDX-License-Identifier: Apache-2.0
"""Decides which checkpoints may be replaced, if a framework chooses the directory names.

After a rollback, a training job saves to the same directories again. The same happens if a job was killed after a commit, but
before the framework recorded the checkpoint. The resumed job may replace its own checkpoints in these directories, if they follow
the checkpoint from which it resumed.
"""

from __future__ import annotations

from typing import Any

from sealpoint import _directories, _paths, _sealpoint
from sealpoint._checkpoint import open_own as open_checkpoint
from sealpoint._errors import AlreadyExistsError, Error
from sealpoint._native import MARKER, native_files, some
from sealpoint._series import Series

# Provenance entry that lists the checkpoints that a checkpoint and its predecessors replaced, as "attempt:parent", newest first.
# With this entry, successors of a replaced checkpoint are still recognized as checkpoints of this training run.
REPLACED = "lineage.replaced"
_REPLACED_MAX = 256
_NOTE_SIZE_MAX_BYTES = _REPLACED_MAX * 66


class Run:
    """The checkpoints that this process loaded and saved in one folder."""

    def __init__(self) -> None:
        # (attempt, sequence, directory) of the last load or save.
        self.latest: tuple[str, int, str] | None = None
        self.resumed: tuple[str, int] | None = None
        self.loaded: set[str] = set()
        self.saved: set[str] = set()
        self.on_their_way: set[str] = set()  # directories of staged checkpoints that are not promoted yet

    def note_load(self, attempt: str, sequence: int, directory: str) -> None:
        self.latest, self.resumed = (attempt, sequence, directory), (attempt, sequence)
        self.loaded.add(attempt)

    def note_save(self, attempt: str, sequence: int, directory: str) -> None:
        self.latest = (attempt, sequence, directory)
        self.saved.add(attempt)


def removal_of(directory: str) -> str:
    """Describes how a user removes the checkpoint."""
    return f"{'rm -r' if _paths.is_local(directory) else 'delete'} {directory}"


def remove_replaceable(directory: str, run: Run, *, replace: bool, obstacle: str | None, way_out: str) -> list[str]:
    """Removes the checkpoint in a directory if the checkpoint may be replaced. One process calls this function.

    Args:
        replace: Remove any checkpoint, including a native checkpoint, unless a KEEP file pins it.
        obstacle: The framework's reason for keeping the checkpoint, or None.
        way_out: Advice to include in the error message.

    Returns:
        The removed checkpoint, and the checkpoints that it and its predecessors replaced. The provenance of the new checkpoint
        lists them.

    Raises AlreadyExistsError, and the errors of ``Series.list``.
    """
    names = _paths.list_names(directory)
    is_there = MARKER in names
    natives = native_files(directory)
    if not is_there and not natives:
        return _noted(directory)
    if replace:
        if "KEEP" in names:
            raise AlreadyExistsError("the checkpoint here is not replaced: a file KEEP pins it", path=directory)
        _directories.remove(directory)
        return []
    if natives:
        raise AlreadyExistsError(
            f"a native checkpoint is in this directory ({some(natives)}), and is not replaced; to continue: {way_out}",
            path=directory,
        )
    folder, name = _paths.split(directory)
    entries = Series(folder).list()
    found = [item for item in entries if item.name == name]
    before = _replaced_before(entries)
    why = obstacle or (_why_not(found[0], entries, run, before) if found else "its marker is not a file")
    if why is not None:
        raise AlreadyExistsError(
            f"a checkpoint is in this directory, and is not replaced: {why}; to continue: {way_out}", path=directory
        )
    entry = found[0]
    replaced = [f"{entry.attempt}:{entry.parent or ''}", *before.get(str(entry.attempt), [])][:_REPLACED_MAX]
    # If the process is killed before the next commit, this file is the only record of the removed checkpoint.
    _sealpoint.write_file(f"{directory}/{_directories.NOTE}", " ".join(replaced).encode())
    _directories.remove(directory)
    return replaced


def _noted(directory: str) -> list[str]:
    """Reads the list of removed checkpoints, which remains in the directory if the process was killed after the removal."""
    note = _sealpoint.read_file(f"{directory}/{_directories.NOTE}", _NOTE_SIZE_MAX_BYTES) or b""
    try:
        return note.decode().split()[:_REPLACED_MAX]
    except UnicodeDecodeError:
        return []


def _why_not(
    entry: _sealpoint.SeriesEntry, entries: list[_sealpoint.SeriesEntry], run: Run, before: dict[str, list[str]]
) -> str | None:
    """Explains why a checkpoint must be kept.

    Returns None if the checkpoint may be replaced. In this case it follows, in the same lineage, the checkpoint from which this run
    resumed.
    """
    if entry.verdict != "committed":
        return "its marker is void" if entry.is_void else f"its marker is {entry.verdict}"
    if entry.is_kept or entry.is_base:
        return "a file KEEP pins it"
    if entry.is_link:
        return "it is a symbolic link"
    if entry.attempt in run.loaded:
        return "this run loaded it"
    if run.resumed is not None and entry.sequence <= run.resumed[1]:
        return f"it is not newer than the checkpoint that this run resumed from (sequence {run.resumed[1]})"
    if run.latest is None:
        others = [item for item in entries if item.verdict == "committed" and item is not entry]
        if others or entry.parent is not None:
            return "this run neither resumed from this directory nor saved into it"
        return None
    return _why_not_of_the_run(entry, entries, run, before)


def _why_not_of_the_run(
    entry: _sealpoint.SeriesEntry, entries: list[_sealpoint.SeriesEntry], run: Run, before: dict[str, list[str]]
) -> str | None:
    """Explains why a run that has resumed or saved must not replace a checkpoint.

    Returns None if the checkpoint follows one that the run resumed from or saved, and if another complete checkpoint of the run
    remains.
    """
    def pairs(attempt: str) -> list[tuple[str, str | None]]:
        return [(item.partition(":")[0], item.partition(":")[2] or None) for item in before.get(attempt, [])]

    parents = dict(pair for attempt in before for pair in pairs(attempt))
    parents.update({str(item.attempt): item.parent for item in entries if item.verdict == "committed"})
    known = run.saved if run.resumed is None else run.saved | {run.resumed[0]}
    # A known checkpoint may have replaced another one. Successors of the replaced one count as successors of the known one.
    roots = known | {attempt for item in known for attempt, _ in pairs(item)}
    at, seen = entry.attempt, set[str]()
    while at is not None and at not in roots and at not in seen:
        seen.add(at)
        at = parents.get(at)
    if at not in roots:
        return "it is not a successor of a checkpoint that this run resumed from or saved"
    stays = [item for item in entries if item is not entry and item.attempt in known and item.verdict == "committed"]
    problems: list[str] = []
    for stay in stays:
        try:
            with open_checkpoint(stay.path):
                _sealpoint.sync_directory(stay.path)
                _sealpoint.sync_directory(_paths.split(stay.path)[0])
                return None
        except Error as error:
            problems.append(str(error))
    if not stays and run.resumed is None:
        return None  # this is the only checkpoint that this run saved
    return "no other checkpoint that this run resumed from or saved is complete" + "".join(f": {problem}" for problem in problems)


def _replaced_before(entries: list[_sealpoint.SeriesEntry]) -> dict[str, list[str]]:
    """Maps the attempt id of each committed checkpoint to the checkpoints that it and its predecessors replaced."""
    found = {}
    for entry in entries:
        if entry.verdict != "committed":
            continue
        try:
            with open_checkpoint(entry.path, check_files=False) as checkpoint:
                found[str(entry.attempt)] = checkpoint.provenance.get(REPLACED, "").split()
        except Error:
            continue  # a damaged checkpoint proves nothing
    return found


def provenance_of(replaced: list[Any]) -> dict[str, str]:
    return {REPLACED: " ".join(replaced)} if replaced else {}
