# SPDX-License-Identifier: Apache-2.0
"""All options of saves and loads, one row each.

``scripts/options.py`` makes of it the keywords and dataclasses of each face, the docstrings, docs/reference/options.md, the
binding of a saver's options, and comments of the C header. Checks, and the comparison between ranks, read it at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from sealpoint import _rules
from sealpoint._rules import Rule

CHUNK_SIZE_DEFAULT_BYTES = 4 << 20
BLOB_SIZE_MAX_DEFAULT_BYTES = 64 << 30
DEADLINE_DEFAULT_SECONDS = 1800.0
BACKGROUND_DEADLINE_DEFAULT_SECONDS = 7200.0
LOAD_BUDGET_DEFAULT_BYTES = 256 << 20


class Own(NamedTuple):
    """Values of one call that replace the row's. Empty: the row's."""

    text: str = ""
    type: str = ""
    default: Any = ...


class Saver(NamedTuple):
    """The field of SaverOptions that an option sets, and its value there."""

    field: str
    value: Callable[[Any], Any] = lambda value: value


class C(NamedTuple):
    """A field of a C struct, and its meaning besides the default."""

    struct: str
    field: str
    meaning: str = ""


class Option(NamedTuple):
    """One option.

    Attributes:
        type: Annotation, with the names that scripts/options.py imports.
        unit: Of a number.
        rule: Type and range; or the function that checks the value.
        calls: Names of the calls that take it, see ``CALLS``. A call also has the options of its base.
        text: For the docstring of the first of them; others refer to it.
        is_same: It must be equal on all ranks, after ``compared``.
    """

    type: str
    default: Any
    rule: Rule | Literal["path", "provenance", "framework"]
    calls: str
    text: str
    unit: str = ""
    is_same: bool = False
    compared: Callable[[Any], Any] = lambda value: value
    saver: Saver | None = None
    c: tuple[C, ...] = ()
    own: Mapping[str, Own] = MappingProxyType({})


class Call(NamedTuple):
    """A function or class with options.

    Attributes:
        place: Module and name, as in ``torch/_save.py:save``. Its docstring has the options.
        keywords: Module and TypedDict of its options; empty if its parameters are explicit.
        base: Call with further options of this one.
    """

    place: str = ""
    keywords: str = ""
    base: str = ""


CALLS = {
    "save": Call("_save.py:save"),
    "store": Call(keywords="_options.py:StoreKeywords"),
    "torch.dcp.StorageWriter": Call("torch/_dcp_writer.py:StorageWriter", "torch/_options.py:WriterKeywords", "store"),
    "torch.save": Call("torch/_save.py:save", "torch/_options.py:SaveKeywords", "torch.dcp.StorageWriter"),
    "torch.save_async": Call("torch/_save.py:save_async", "torch/_options.py:SaveAsyncKeywords", "torch.save"),
    "torch.Checkpointer": Call(keywords="torch/_options.py:CheckpointerKeywords", base="store"),
    "torch.dcp.StorageReader": Call("torch/_dcp_reader.py:StorageReader", "torch/_options.py:ReaderKeywords"),
    "torch.Checkpointer.resume": Call(keywords="torch/_options.py:ResumeKeywords", base="torch.dcp.StorageReader"),
    "torch.load": Call("torch/_load.py:load", "torch/_options.py:LoadKeywords", "torch.Checkpointer.resume"),
    "jax.save": Call("jax/_save.py:save", "jax/_options.py:SaveKeywords", "store"),
    "jax.save_async": Call("jax/_save.py:save_async", "jax/_options.py:SaveAsyncKeywords", "jax.save"),
    "jax.load": Call("jax/_load.py:load", "jax/_options.py:LoadKeywords"),
    "megatron.enable": Call("megatron/__init__.py:enable", "megatron/_options.py:EnableKeywords", "store"),
    "torchtitan": Call("torchtitan/_manager.py:SealpointCheckpointManager"),
}
_SAVES = "save torch.save torch.Checkpointer jax.save"
_STAGED = "torch.save torch.Checkpointer"
_LOADS = "torch.dcp.StorageReader jax.load"


def _seconds(value: float | None) -> float | None:
    return None if value is None else float(value)


def _patterns(value: Any) -> Any:
    return value if isinstance(value, str) else list(value)


def _is_frozen(value: Any) -> bool:
    return isinstance(value, str) or _rules.PATTERNS.has_type(value)


OPTIONS: dict[str, Option] = {
    "codec": Option(
        "Codec", "none", _rules.words("none", "zstd", "bytesplit+zstd"), "save store torchtitan",
        'Compression: "none", "zstd" or, for floating-point numbers, "bytesplit+zstd".',
    ),
    "codec_level": Option(
        "int", 1, _rules.integer(-(2**31), 2**31 - 1), "save store", "Compression level of zstd.",
        c=(C("sealpoint_tensor_spec", "codec_level"),),
    ),
    "chunk_size_bytes": Option(
        "int", CHUNK_SIZE_DEFAULT_BYTES, _rules.BYTES, "save store",
        "Unit of digests and codecs: a power of two, 4 KiB to 128 MiB (16 MiB with a codec).", "bytes",
        c=(C("sealpoint_tensor_spec", "chunk_size_bytes"),),
    ),
    "blob_size_max_bytes": Option(
        "int", BLOB_SIZE_MAX_DEFAULT_BYTES, _rules.BYTES, "save", "Maximum size of a file. Default: 64 GiB.", "bytes",
        c=(C("sealpoint_saver_options", "blob_size_max_bytes"),),
    ),
    "step": Option(
        "int | None", None, _rules.STEP, "save torch.dcp.StorageWriter jax.save", "Training step. Required with ``series``.",
    ),
    "series": Option(
        "bool", False, _rules.BOOL, "save torch.save jax.save",
        "Save into a new subdirectory ``step-...`` of this series. Its newest checkpoint becomes the parent.", is_same=True,
    ),
    "parent": Option(
        "Parent", None, _rules.PARENT, "save torch.dcp.StorageWriter jax.save",
        "Preceding checkpoint, if this one is outside a series.",
    ),
    "provenance": Option(
        "Provenance | None", None, "provenance", f"{_SAVES} torch.dcp.StorageWriter",
        'Additional facts to store, such as {"metric.loss": 1.25}. Stored as strings, numbers via ``repr``.',
    ),
    "allow_empty": Option(
        "bool", False, _rules.BOOL, _SAVES, "Allow a checkpoint without tensors and objects.", is_same=True,
    ),
    "allow_fallback": Option(
        "bool", False, _rules.BOOL, _SAVES,
        "Save into the series even if one of its markers is damaged or has another version, and might therefore be newer. The "
        "new checkpoint follows all readable ones. If False, the error of that marker is raised.", is_same=True,
    ),
    "process_group": Option(
        "dist.ProcessGroup | None", None, "framework", "torch.save torch.dcp.StorageWriter torch.load",
        "Ranks that save together. Default: all. Messages use a private gloo group.",
        own={"torch.dcp.StorageWriter": Own("As passed to DCP. Default: all ranks.")},
    ),
    "no_dist": Option(
        "bool", False, _rules.BOOL, "torch.save torch.dcp.StorageWriter",
        "Save this process alone; other processes do not call it.",
        own={"torch.dcp.StorageWriter": Own("As passed to DCP: this process saves alone.")},
    ),
    "compare_replicas": Option(
        "bool", True, _rules.BOOL, "torch.save store torchtitan",
        "Compare digests of replicated values. False saves one pass over that memory; the copy of the first rank is then "
        "stored without comparison.", is_same=True, saver=Saver("compare_replicas"),
        c=(C("sealpoint_saver_options", "compare_replicas", "require replicas to hold the same bytes"),),
        own={"megatron.enable": Own(
            "Compare all replicas of a tensor and distribute its bytes among them. False: store the main replicas.")},
    ),
    "first_rank": Option(
        "Sequence[str]", (), _rules.PATTERNS, "torch.save torch.Checkpointer",
        'Patterns (``*`` matches any characters) of tensors that may differ by rank, such as "*.running_mean". The copy of the '
        "first rank that has the tensor is stored without comparison. Buffers of DistributedDataParallel modules passed as "
        "objects are treated the same way, because torch lets them differ between forward passes.",
        is_same=True, compared=list,
    ),
    "allow_pickle": Option(
        "bool", False, _rules.BOOL, "torch.save store torch.load torch.dcp.StorageReader jax.load torchtitan",
        "Pickle values of other types. Only a load with the same option reads them.",
        own={"torch.load": Own(
            "Unpickle values saved with ``allow_pickle``. This runs code chosen by the writer of the file.")},
    ),
    "writer_ranks": Option(
        "Sequence[int]", (), _rules.RANKS, "torch.save torch.Checkpointer torchtitan",
        "Ranks of the group that write, ascending, such as the ranks of one HSDP replica. Default: all. Data is never sent "
        "between ranks, so each part must be held by one of the writers.",
        is_same=True, compared=list, saver=Saver("writer_ranks", tuple), own={"torchtitan": Own("", "list[int]")},
    ),
    "frozen": Option(
        "Frozen", (),
        Rule(_is_frozen, lambda value: not isinstance(value, str) or value == "learned",
             "a sequence of patterns of names, or 'learned'"),
        "torch.save store torchtitan",
        "Patterns (``*`` matches any characters) of tensors that rarely change, such as an untrained base model. Tensors equal "
        "to the preceding checkpoint are linked from it instead of written. The preceding checkpoint is the newest in the "
        'series, otherwise ``parent``, which must then include its location. "learned" detects unchanged tensors by comparing '
        "digests at saves 1, 2, 4, 8 and so on of this process; each comparison costs one pass over the memory. See "
        "docs/reference/durability.md.",
        is_same=True, compared=_patterns, saver=Saver("learn_frozen", lambda value: value == "learned"),
        own={
            "torch.dcp.StorageWriter": Own(
                "As for ``sealpoint.torch.save``. Without ``parent``, frozen tensors are linked from the last checkpoint saved "
                "by this process into the same folder."),
            "megatron.enable": Own(
                "As for ``sealpoint.torch.save``, by patterns of Megatron's keys: unchanged tensors are linked from this run's "
                "last checkpoint in the folder."),
            "torchtitan": Own(
                "As for ``sealpoint.torch.save``: unchanged tensors are linked from the newest step of the folder. Pass "
                '"learned" as a one-element list, because the command line passes lists.', "list[str]"),
        },
    ),
    "full_every": Option(
        "int", 10, _rules.c_integer(1), "torch.save store torchtitan",
        "Maximum number of checkpoints that share a linked file; the next one writes it again. Object stores copy instead of "
        "link.", is_same=True, saver=Saver("frozen_full_every"),
    ),
    "staged": Option(
        "Path | None", None, "path", f"{_STAGED} megatron.enable torchtitan",
        "Directory on a node-local disk; may differ by rank. The save is committed there, across the disks of all nodes, and "
        "then copied to ``path`` in the background. See ``wait_for_promotions`` and ``resume_promotions``.",
        is_same=True, compared=lambda value: value is not None,
        own={
            "megatron.enable": Own(
                "Directory on a node-local disk; may differ by rank. A save is committed there, in a subdirectory for its run, "
                "and copied to Megatron's directory in the background. A load first finishes promotions of an earlier job, so "
                "all ranks must then load. A failed promotion is logged and retried with the next save."),
            "torchtitan": Own(
                "Directory on a node-local disk. A save is committed there, in a subdirectory for its folder, and then copied "
                "to the folder in the background. ``load`` first finishes promotions of an earlier job. A failed promotion is "
                "logged and retried with the next save.", "str | None"),
        },
    ),
    "keep_local": Option(
        "int", 0, _rules.c_integer(0), f"{_STAGED} megatron.enable torchtitan",
        "Number of local copies to keep after their promotion.", is_same=True, saver=Saver("keep_local"),
    ),
    "unpromoted_max": Option(
        "int", 3, _rules.c_integer(1), _STAGED,
        "Maximum number of staged saves awaiting promotion, including this one. When the limit is reached, the save waits "
        "(``save_async`` waits in the background) and then fails with NoSpaceError, which names the pending promotions, their "
        "age and their errors.", is_same=True, saver=Saver("unpromoted_max"),
    ),
    "unpromoted_wait": Option(
        "float", 60.0, Rule(_rules.is_number, lambda value: 0 <= value < 1e9, "seconds of at least 0 and below 1e9"), _STAGED,
        "Maximum wait in seconds; at most half of ``deadline``.", "seconds", is_same=True, compared=float,
        saver=Saver("unpromoted_wait"),
    ),
    "promote_memory_bytes": Option(
        "int", 16 << 20, _rules.SOME_BYTES, _STAGED,
        "Maximum payload memory of a rank's promotions, in addition to ``memory_budget_bytes``.", "bytes", is_same=True,
        saver=Saver("promote_memory_bytes"),
    ),
    "contract": Option(
        "Contract | None", None, "framework", "torch.load torch.Checkpointer.resume",
        "Action for each kind of difference. Default: all are errors. See ``Contract``.", is_same=True,
    ),
    "partial": Option(
        "bool", False, _rules.BOOL, "jax.load", "Allow stored places that ``like`` does not have.", is_same=True,
    ),
    "optimizer_regions": Option(
        "bool", True, _rules.BOOL, "megatron.enable",
        "Store the state of the distributed optimizer as parts of the model's parameters, regardless of "
        "``distrib_optim_sharding_type``. Any load may then use another parallelism, and nothing is gathered.",
    ),
    "replace": Option(
        "bool", False, _rules.BOOL, "megatron.enable torchtitan",
        "A save first removes an existing checkpoint in its directory, including one of ``torch_dist``, unless a KEEP file pins "
        "it. False: it removes only checkpoints that this run saved after the iteration in Megatron's tracker, so that a "
        "killed or rolled back job can continue; others raise AlreadyExistsError.",
        own={"torchtitan": Own(
            "Replace an existing step, including a DCP checkpoint, unless a KEEP file pins it. False: replace only steps that "
            "follow the one this run resumed from, as after a rollback; others raise AlreadyExistsError.")},
    ),
    "convert": Option(
        "Conversion | None", None,
        _rules.or_none(_rules.words("widen", "exact", "nearest"), "widen, exact, nearest or None"),
        f"torch.load {_LOADS} megatron.enable torchtitan",
        'Conversion of elements to other dtypes: "widen" to a floating-point dtype that represents every stored value (bf16 and '
        'f16 to f32 or f64, f32 to f64), "exact" if each value fits, "nearest" with rounding to nearest even. Default: no '
        "conversion.", is_same=True,
        own={
            "jax.load": Own(
                '"exact" converts dtypes if each value fits; "nearest" rounds. Default: different dtypes are errors.',
                "Rounding | None"),
            "torchtitan": Own('As for ``sealpoint.torch.load``; "widen" allows a run to start from a bf16 export.', "", "widen"),
        },
    ),
    "all_ranks": Option(
        "bool", False, _rules.BOOL, "torch.load torch.Checkpointer.resume",
        "Fill each ``per_rank`` place with the list of the values of all saving ranks, by rank, for any number of loading ranks, "
        "so that the program can redistribute them. Tensors among them are new, on the CPU.", is_same=True,
    ),
    "rename": Option(
        "Mapping[str, str] | None", None, _rules.RENAMING, "torch.load",
        'Maps stored names to names in the state: ``{"model.backbone.*": "model.encoder.*"}``; ``*`` matches any characters. A '
        "name that matches nothing is an error.", is_same=True, compared=lambda value: value if value is None else dict(value),
    ),
    "threads": Option(
        "int | None", None, _rules.THREADS, f"torch.load {_LOADS} megatron.enable torchtitan",
        "Number of threads per rank that read and verify. Default: the processors available to a rank divided by the ranks on "
        "its host that share them, at most 16.",
        c=(C("sealpoint_read_options", "threads", "processors divided by the ranks of this host, at most 16"),),
    ),
    "share_chunks": Option(
        "bool | None", None, _rules.or_none(_rules.BOOL, "True, False or None"), "torch.load torch.dcp.StorageReader",
        "True: one rank reads data that several need and sends it to the others. False: each rank reads all of its data, which "
        "is faster for ranks that share a page cache. None: True if the ranks span several hosts. Must be equal on all ranks.",
        is_same=True,
    ),
    "deadline": Option(
        "float | None", DEADLINE_DEFAULT_SECONDS, _rules.SECONDS, f"torch.save store {_LOADS}",
        "Timeout in seconds of one exchange with the other ranks. None: no timeout.", "seconds", is_same=True,
        compared=_seconds, saver=Saver("deadline"), c=(C("sealpoint_saver_options", "deadline_ms", "for one exchange"),),
    ),
    "background_deadline": Option(
        "float | None", BACKGROUND_DEADLINE_DEFAULT_SECONDS, _rules.SECONDS,
        "torch.save_async torch.Checkpointer jax.save_async megatron.enable",
        "Timeout in seconds of the save after this call returned. None: no timeout.", "seconds", is_same=True,
        compared=_seconds, saver=Saver("background_deadline"),
        c=(C("sealpoint_saver_options", "background_deadline_ms", "for a background save"),),
    ),
    "memory_budget_bytes": Option(
        "int | None", None, _rules.or_none(_rules.SOME_BYTES, _rules.SOME_BYTES.expected), f"torch.save store torch.load {_LOADS}",
        "Staging memory, fixed by the first save of this group. Default: at most a quarter of the memory available to this "
        "process (machine or control group), divided by the ranks of the machine.", "bytes",
        own={
            "torch.dcp.StorageWriter": Own("Staging memory, fixed by the first save of the process group."),
            "torch.load": Own("Maximum staging memory per rank. Default: 256 MiB.", "int", LOAD_BUDGET_DEFAULT_BYTES),
            "torch.dcp.StorageReader": Own("", "int", LOAD_BUDGET_DEFAULT_BYTES),
            "jax.load": Own("", "int", LOAD_BUDGET_DEFAULT_BYTES),
        },
    ),
    "progress": Option(
        "Progress", None, _rules.PROGRESS, f"save torch.load {_LOADS}", "As for ``sealpoint.Checkpoint.read``.",
    ),
}


def names_of(call: str, *, with_base: bool = True) -> list[str]:
    """Returns the names of a call's options, in the order of the table."""
    base = names_of(CALLS[call].base) if with_base and CALLS[call].base else []
    return [name for name, option in OPTIONS.items() if name in base or call in option.calls.split()]
