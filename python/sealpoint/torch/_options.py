# SPDX-License-Identifier: Apache-2.0
"""What saves and loads are to be like: as keywords of the functions that programs call, and as one value within the package.

Each face has the keywords that mean something there; defaults, and what is handed on, are in the dataclasses alone.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar

import torch.distributed as dist

from sealpoint._arguments import Provenance
from sealpoint._checkpoint import OnMismatch, Path, Progress
from sealpoint._errors import InvalidArgumentError
from sealpoint._hints import nearest
from sealpoint._save import CHUNK_SIZE_DEFAULT_BYTES, Codec, Parent

DEADLINE_DEFAULT_SECONDS = 1800.0
BACKGROUND_DEADLINE_DEFAULT_SECONDS = 7200.0
LOAD_BUDGET_DEFAULT_BYTES = 256 << 20
Conversion = Literal["widen", "exact", "nearest"]
# What keywords were named before.
_RENAMED = {"pass_on": "share_chunks"}


class StoreKeywords(TypedDict, total=False):
    """What any face that saves has."""

    codec: Codec
    codec_level: int
    chunk_size_bytes: int
    compare_replicas: bool
    allow_pickle: bool
    deadline: float | None
    memory_budget_bytes: int | None


class WriterKeywords(StoreKeywords, total=False):
    """See ``sealpoint.torch.dcp.StorageWriter``."""

    process_group: dist.ProcessGroup | None
    no_dist: bool
    step: int | None
    parent: Parent
    provenance: Provenance | None


class SaveKeywords(WriterKeywords, total=False):
    """See ``sealpoint.torch.save``."""

    series: bool
    allow_empty: bool
    writer_ranks: Sequence[int]
    staged: Path | None
    keep_local: int


class SaveAsyncKeywords(SaveKeywords, total=False):
    """See ``sealpoint.torch.save_async``."""

    background_deadline: float | None


class CheckpointerKeywords(StoreKeywords, total=False):
    """See ``sealpoint.torch.Checkpointer``."""

    no_dist: bool
    parent: Parent
    provenance: Provenance | None
    allow_empty: bool
    writer_ranks: Sequence[int]
    background_deadline: float | None
    staged: Path | None
    keep_local: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """How a state is stored."""

    codec: Codec = "none"
    codec_level: int = 1
    chunk_size_bytes: int = CHUNK_SIZE_DEFAULT_BYTES
    compare_replicas: bool = True
    allow_pickle: bool = False
    deadline: float | None = DEADLINE_DEFAULT_SECONDS
    background_deadline: float | None = BACKGROUND_DEADLINE_DEFAULT_SECONDS
    memory_budget_bytes: int | None = None

    @property
    def encoding(self) -> tuple[Codec, int, int]:
        return (self.codec, self.codec_level, self.chunk_size_bytes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaveOptions(StoreOptions):
    """A save: also where it goes, and who takes part."""

    process_group: dist.ProcessGroup | None = None
    no_dist: bool = False
    series: bool = False
    step: int | None = None
    parent: Parent = None
    provenance: Provenance | None = None
    allow_empty: bool = False
    writer_ranks: Sequence[int] = ()
    staged: Path | None = None
    keep_local: int = 0


class Contract:
    """What differences between a state dict and a checkpoint lead to: each "error", "report" or "allow".

    Args:
        missing: the state has a place that the checkpoint does not have. Going on leaves it as it is.
        unexpected: the checkpoint has a place that no rank's state has.
        shape, coverage: of tensors; as for ``Checkpoint.read``.
        dtype: a tensor's dtype differs; never converted, unless ``convert`` of ``load`` says so.
        kind: a tensor where the other has a value, or a list of another length. Going on leaves it as it is.
        per_rank: another number of ranks saved values of ``per_rank``. Going on leaves them as they are.
    """

    def __init__(
        self,
        missing: OnMismatch = "error",
        unexpected: OnMismatch = "error",
        dtype: OnMismatch = "error",
        shape: OnMismatch = "error",
        coverage: OnMismatch = "allow",
        kind: OnMismatch = "error",
        per_rank: OnMismatch = "error",
    ) -> None:
        self.missing, self.unexpected, self.dtype, self.shape = missing, unexpected, dtype, shape
        self.coverage, self.kind, self.per_rank = coverage, kind, per_rank
        for name, value in vars(self).items():
            if value not in ("error", "report", "allow"):
                raise InvalidArgumentError(f"{name} is {value!r}, expected error, report or allow")

    def __repr__(self) -> str:
        return f"Contract({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @staticmethod
    def partial() -> Contract:
        """For loading some of a checkpoint: stored places that the state does not have are allowed."""
        return Contract(unexpected="allow")


class ReaderKeywords(TypedDict, total=False):
    """See ``sealpoint.torch.dcp.StorageReader``."""

    convert: Conversion | None
    allow_pickle: bool
    threads: int
    memory_budget_bytes: int
    share_chunks: bool | None
    deadline: float | None
    progress: Progress


class ResumeKeywords(ReaderKeywords, total=False):
    """See ``sealpoint.torch.Checkpointer.resume``."""

    contract: Contract | None


class LoadKeywords(ResumeKeywords, total=False):
    """See ``sealpoint.torch.load``."""

    process_group: dist.ProcessGroup | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """A load."""

    process_group: dist.ProcessGroup | None = None
    contract: Contract | None = None
    convert: Conversion | None = None
    allow_pickle: bool = False
    threads: int = 1
    memory_budget_bytes: int = LOAD_BUDGET_DEFAULT_BYTES
    share_chunks: bool | None = None
    deadline: float | None = DEADLINE_DEFAULT_SECONDS
    progress: Progress = None


F = TypeVar("F", bound=Callable[..., Any])


def names_of(keywords: Any) -> list[str]:
    """The names that a TypedDict has, in the order in which they are declared."""
    return list(keywords.__annotations__)


def takes(keywords: Any, options: Any) -> Callable[[F], F]:
    """Lets ``help()`` and ``inspect.signature`` show the keywords of a function, each with its default in the options."""

    def set_signature(function: F) -> F:
        signature = inspect.signature(function)
        positional = [one for one in signature.parameters.values() if one.kind != one.VAR_KEYWORD]
        fields = {one.name: one for one in dataclasses.fields(options)}
        added = [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
            for one in (fields[name] for name in names_of(keywords))
        ]
        function.__signature__ = signature.replace(parameters=[*positional, *added])  # type: ignore[attr-defined]
        return function

    return set_signature


def refuse_unknown(what: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    """Errors: TypeError (a keyword that is not known; says which one was meant)."""
    for name in given:
        if name in known:
            continue
        if name in _RENAMED:
            raise TypeError(f"{what} has no option {name!r}: it is named {_RENAMED[name]!r} now")
        near = nearest(name, known)
        hint = "" if near is None else f"; the nearest is {near!r}"
        raise TypeError(f"{what} has no option {name!r}, expected one of {', '.join(known)}{hint}")
