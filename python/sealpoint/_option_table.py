# SPDX-License-Identifier: Apache-2.0
"""All options of saves and loads, one row per option.

From this table, ``scripts/options.py`` generates the keywords and dataclasses for each framework, the docstrings, and
docs/reference/options.md. It also generates the binding of a saver's options, and comments of the C header. Argument checks and the
comparison between ranks read the table at run time.
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
    """Values that replace the values of the row for one call. If a field is empty, the value of the row applies."""

    text: str = ""
    type: str = ""
    default: Any = ...


class Saver(NamedTuple):
    """The field of SaverOptions that an option sets, and the conversion of the option to the value of this field."""

    field: str
    value: Callable[[Any], Any] = lambda value: value


class C(NamedTuple):
    """A field of a C struct, and the description of the field without its default."""

    struct: str
    field: str
    meaning: str = ""


class Option(NamedTuple):
    """One option.

    Attributes:
        type: Annotation as text. It may use only names that scripts/options.py imports.
        unit: Unit of a number.
        rule: Type and range, or the word that selects a check.
        calls: Names of the calls that accept the option, see ``CALLS``. A call also accepts the options of its base.
        text: Description, which appears in the docstring of the first call in ``calls``. The docstrings of the other
            calls refer to the first.
        is_same: Whether the values, converted by ``compared``, must be equal on all ranks.
    """

    type: str
    default: Any
    rule: Rule | Literal["path", "provenance", "attributes", "framework"]
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
        place: Module and name, such as ``torch/_save.py:save``. The docstring of the function or class lists the options.
        keywords: Module and name of the TypedDict with the call's options; empty if the call has explicit parameters.
        base: Name of another call. This call also accepts all options of that call.
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


def cuts_of(value: Mapping[str, Any] | None) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Converts ``stored_cuts`` to (pattern, cuts) pairs."""
    return tuple((pattern, tuple(map(int, cuts))) for pattern, cuts in (value or {}).items())


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
        "Chunk size: a power of two from 4 KiB to 128 MiB. With a codec, at most 16 MiB. Each chunk is digested and "
        "compressed separately.", "bytes",
        c=(C("sealpoint_tensor_spec", "chunk_size_bytes"),),
    ),
    "stored_cuts": Option(
        "Mapping[str, Sequence[int]] | None", None, _rules.CUTS, "save store",
        'Boxes in which tensors are stored, such as ``{"grid.*": (64, 64, 64)}``. Maps patterns of names (``*`` matches any '
        "characters) to the extents of the boxes, one extent per dimension. Extent 0 means the whole dimension. The first "
        "pattern that matches a tensor applies. Regions are cut at multiples of the extents. Each box has its own chunks, so a "
        "read of a plane or a block reads only the boxes that overlap with it. A pattern is an error if it matches no tensor, "
        "or a tensor with a different number of dimensions. Default: each region is stored in row-major order.",
        is_same=True, compared=lambda value: [[pattern, list(cuts)] for pattern, cuts in cuts_of(value)],
        saver=Saver("stored_cuts", cuts_of),
    ),
    "fingerprints": Option(
        "bool", False, _rules.BOOL, "save store",
        "Store the fingerprint of each tensor; see ``sealpoint.fingerprint``. This costs one more pass of the processor over "
        "the tensors. Readers of release 1.0.0 ignore fingerprints.", is_same=True,
        saver=Saver("fingerprints"),
    ),
    "blob_size_max_bytes": Option(
        "int", BLOB_SIZE_MAX_DEFAULT_BYTES, _rules.BYTES, "save", "Maximum size of a file. Default: 64 GiB.", "bytes",
        c=(C("sealpoint_saver_options", "blob_size_max_bytes"),),
    ),
    "step": Option(
        "int | None", None, _rules.STEP, "save torch.dcp.StorageWriter jax.save",
        "Training step. Required if ``series`` is true.",
    ),
    "series": Option(
        "bool", False, _rules.BOOL, "save torch.save jax.save",
        "Save into a new subdirectory ``step-...`` of this series. The newest checkpoint in the series becomes the parent.",
        is_same=True,
    ),
    "parent": Option(
        "Parent", None, _rules.PARENT, "save torch.dcp.StorageWriter jax.save",
        "Preceding checkpoint, if the new checkpoint is not saved into a series.",
    ),
    "provenance": Option(
        "Provenance | None", None, "provenance", f"{_SAVES} torch.dcp.StorageWriter",
        'Additional facts to store, such as {"metric.loss": 1.25}. Values are stored as strings; numbers are converted by '
        "``repr``.",
    ),
    "attributes": Option(
        "Attributes | None", None, "attributes", f"{_SAVES} torch.dcp.StorageWriter",
        'Attributes of the checkpoint: named values that describe the data, such as {"time": 0.5}. A value is a str, int, '
        "float or bool, or a list of values of one of these types. If several ranks save together, those of rank 0 are "
        "stored. Readers of release 1.0.0 ignore attributes.",
    ),
    "tensor_attributes": Option(
        "Mapping[str, Attributes] | None", None, "framework", "save",
        'Attributes of tensors by name, such as {"t": {"units": "K", "dimensions": ["lat", "lon"]}}.',
    ),
    "allow_empty": Option(
        "bool", False, _rules.BOOL, _SAVES, "Allow a checkpoint without tensors and objects.", is_same=True,
    ),
    "allow_fallback": Option(
        "bool", False, _rules.BOOL, _SAVES,
        "Save into the series even if the marker of an existing checkpoint is damaged or has a different format "
        "version. The new checkpoint then follows the newest readable checkpoint, although the unreadable one "
        "might be newer. If False, such a marker is an error.", is_same=True,
    ),
    "process_group": Option(
        "dist.ProcessGroup | None", None, "framework", "torch.save torch.dcp.StorageWriter torch.load",
        "Ranks that save together. Default: all ranks. Messages use a private gloo group.",
        own={"torch.dcp.StorageWriter": Own("Must be the group passed to DCP. Default: all ranks.")},
    ),
    "no_dist": Option(
        "bool", False, _rules.BOOL, "torch.save torch.dcp.StorageWriter",
        "Save only the state of this process. Other processes do not call the function.",
        own={"torch.dcp.StorageWriter": Own("Must be equal to ``no_dist`` passed to DCP. If True, this process saves alone.")},
    ),
    "compare_replicas": Option(
        "bool", True, _rules.BOOL, "torch.save store torchtitan",
        "Compare digests of replicated values. If False, the value of the first rank is stored without comparison, which avoids "
        "one pass over the memory of these values.", is_same=True, saver=Saver("compare_replicas"),
        c=(C("sealpoint_saver_options", "compare_replicas", "require replicas to hold the same bytes"),),
        own={"megatron.enable": Own(
            "Compare all replicas of a tensor, and divide the writing among the ranks that have a replica. If False, only "
            "the main replica of each tensor is stored, without comparison.")},
    ),
    "first_rank": Option(
        "Sequence[str]", (), _rules.PATTERNS, "torch.save torch.Checkpointer",
        'Patterns (``*`` matches any characters) of tensors that may differ between ranks, such as "*.running_mean". Only the '
        "first rank that has such a tensor stores it; its values are not compared. If a DistributedDataParallel "
        "module is passed as an object, its buffers are treated in the same way, because torch lets buffers differ between "
        "forward passes.",
        is_same=True, compared=list,
    ),
    "allow_pickle": Option(
        "bool", False, _rules.BOOL, "torch.save store torch.load torch.dcp.StorageReader jax.load torchtitan",
        "Pickle values of types that cannot be stored otherwise. Only a load with ``allow_pickle`` reads these values.",
        own={"torch.load": Own(
            "Unpickle values that were saved with ``allow_pickle``. Unpickling runs code chosen by the writer of the file.")},
    ),
    "writer_ranks": Option(
        "Sequence[int]", (), _rules.RANKS, "torch.save torch.Checkpointer torchtitan",
        "Ranks of the group that write, in ascending order, such as the ranks of one HSDP replica. Default: all ranks. Data is "
        "never sent between ranks, so each part of the state must be present on one of these ranks.",
        is_same=True, compared=list, saver=Saver("writer_ranks", tuple), own={"torchtitan": Own("", "list[int]")},
    ),
    "frozen": Option(
        "Frozen", (),
        Rule(_is_frozen, lambda value: not isinstance(value, str) or value == "learned",
             "a sequence of patterns of names, or 'learned'"),
        "torch.save store torchtitan",
        "Patterns (``*`` matches any characters) of tensors that rarely change, such as an untrained base model. If such a "
        "tensor is equal to the tensor in the preceding checkpoint, the save links the stored tensor instead of writing it "
        "again. In a series, the preceding checkpoint is the newest one. Outside a series, it is the checkpoint passed as "
        '``parent``, which must then include the directory. "learned" detects unchanged tensors by comparing digests. The '
        "comparison runs at saves 1, 2, 4, 8 and so on of this process, and costs one pass over the memory each time. See "
        "docs/reference/durability.md.",
        is_same=True, compared=_patterns, saver=Saver("learn_frozen", lambda value: value == "learned"),
        own={
            "torch.dcp.StorageWriter": Own(
                "As for ``sealpoint.torch.save``. If ``parent`` is not set, frozen tensors are linked from the last checkpoint "
                "that this process saved into the same folder."),
            "megatron.enable": Own(
                "As for ``sealpoint.torch.save``, with patterns of Megatron's keys. Unchanged tensors are linked from this run's "
                "last checkpoint in the folder."),
            "torchtitan": Own(
                "As for ``sealpoint.torch.save``. Unchanged tensors are linked from the newest step in the folder. Pass "
                '"learned" as a one-element list, because the command line accepts only lists.', "list[str]"),
        },
    ),
    "full_every": Option(
        "int", 10, _rules.c_integer(1), "torch.save store torchtitan",
        "Maximum number of checkpoints that share a linked file; the next checkpoint writes the file again. Object stores copy "
        "the file instead of linking it.", is_same=True, saver=Saver("frozen_full_every"),
    ),
    "staged": Option(
        "Path | None", None, "path", f"{_STAGED} megatron.enable torchtitan",
        "Directory on a node-local disk; may differ between ranks. The save is first committed across the local disks of all "
        "nodes, and then copied to ``path`` in the background. See ``wait_for_promotions`` and ``resume_promotions``.",
        is_same=True, compared=lambda value: value is not None,
        own={
            "megatron.enable": Own(
                "Directory on a node-local disk; may differ between ranks. A save is first committed in this directory, in a "
                "subdirectory for its run. It is then copied to Megatron's directory in the background. A load first finishes "
                "the promotions of an earlier job, so all ranks must load. If a promotion fails, the error is logged, and the "
                "next save tries the promotion again."),
            "torchtitan": Own(
                "Directory on a node-local disk. A save is first committed in this directory, in a subdirectory "
                "for its folder. It is then copied to the folder in the background. ``load`` first finishes the "
                "promotions of an earlier job. If a promotion fails, the error is logged, and the next save "
                "tries the promotion again.", "str | None"),
        },
    ),
    "keep_local": Option(
        "int", 0, _rules.c_integer(0), f"{_STAGED} megatron.enable torchtitan",
        "Number of promoted checkpoints whose local copies are kept.", is_same=True, saver=Saver("keep_local"),
        c=(C("sealpoint_saver_options", "keep_local", "promoted staged saves to keep on local storage"),),
    ),
    "unpromoted_max": Option(
        "int", 3, _rules.c_integer(1), _STAGED,
        "Maximum number of staged saves awaiting promotion, including this save. When the limit is reached, the save waits up "
        "to ``unpromoted_wait`` seconds for a promotion to end (``save_async`` waits in the background). If no promotion ends, "
        "the save fails with NoSpaceError. This error names the oldest save that awaits promotion, its age and its last error.",
        is_same=True, saver=Saver("unpromoted_max"),
        c=(C("sealpoint_saver_options", "unpromoted_max", "staged saves awaiting promotion, with the new one"),),
    ),
    "unpromoted_wait": Option(
        "float", 60.0, Rule(_rules.is_number, lambda value: 0 <= value < 1e9, "seconds of at least 0 and below 1e9"), _STAGED,
        "Maximum time in seconds that a save waits when ``unpromoted_max`` is reached. At most half of ``deadline``.", "seconds",
        is_same=True, compared=float,
        saver=Saver("unpromoted_wait"), c=(C("sealpoint_saver_options", "unpromoted_wait_ms", "wait for one of them"),),
    ),
    "promote_memory_bytes": Option(
        "int", 16 << 20, _rules.SOME_BYTES, _STAGED,
        "Maximum payload memory for promotions on each rank, in addition to ``memory_budget_bytes``.", "bytes", is_same=True,
        saver=Saver("promote_memory_bytes"), c=(C("sealpoint_saver_options", "promote_memory_bytes", "payload in memory"),),
    ),
    "contract": Option(
        "Contract | None", None, "framework", "torch.load torch.Checkpointer.resume",
        "Action for each kind of difference between checkpoint and state. Default: each difference is an error. See "
        "``Contract``.", is_same=True,
    ),
    "partial": Option(
        "bool", False, _rules.BOOL, "jax.load", "Allow the checkpoint to have names that ``like`` does not have.", is_same=True,
    ),
    "optimizer_regions": Option(
        "bool", True, _rules.BOOL, "megatron.enable",
        "Store the state of the distributed optimizer as parts of the model's parameters, regardless of "
        "``distrib_optim_sharding_type``. Any load may then use a different parallelism, and no rank gathers state.",
    ),
    "replace": Option(
        "bool", False, _rules.BOOL, "megatron.enable torchtitan",
        "If its directory already has a checkpoint, a save first removes this checkpoint, even in the format ``torch_dist``. A "
        "checkpoint pinned by a KEEP file is not removed. If False, a save removes only checkpoints that this run saved after "
        "the iteration in Megatron's tracker. A killed or rolled back job can thus continue. Any other checkpoint raises "
        "AlreadyExistsError.",
        own={"torchtitan": Own(
            "Replace an existing step, including a DCP checkpoint, unless a KEEP file pins it. If False, replace only steps "
            "that follow the step from which this run resumed, for example after a rollback. Any other existing step raises "
            "AlreadyExistsError.")},
    ),
    "convert": Option(
        "Conversion | None", None,
        _rules.or_none(_rules.words("widen", "exact", "nearest"), "widen, exact, nearest or None"),
        f"torch.load {_LOADS} megatron.enable torchtitan",
        'Conversion of elements to the dtype of the state. "widen" converts only to a floating-point dtype that can represent '
        'every value of the stored dtype (bf16 and f16 to f32 or f64, f32 to f64). "exact" requires that the new dtype '
        'represents each stored value. "nearest" rounds to nearest even. Default: no conversion.', is_same=True,
        own={
            "jax.load": Own(
                '"exact" converts elements to the dtype of ``like`` if this dtype represents each value; "nearest" rounds to '
                "nearest even. By default, a different dtype is an error.",
                "Rounding | None"),
            "torchtitan": Own('As for ``sealpoint.torch.load``; "widen" allows a run to start from a bf16 export.', "", "widen"),
        },
    ),
    "all_ranks": Option(
        "bool", False, _rules.BOOL, "torch.load torch.Checkpointer.resume",
        "Fill each ``per_rank`` place with a list of the values of all ranks that saved, in rank order. The program can then "
        "redistribute the values over any number of loading ranks. Tensors in the list are new and on the CPU.",
        is_same=True,
    ),
    "rename": Option(
        "Mapping[str, str] | None", None, _rules.RENAMING, "torch.load",
        'Maps stored names to names in the state: ``{"model.backbone.*": "model.encoder.*"}``; ``*`` matches any characters. A '
        "pattern that matches no stored name is an error.",
        is_same=True, compared=lambda value: value if value is None else dict(value),
    ),
    "threads": Option(
        "int | None", None, _rules.THREADS, f"torch.load {_LOADS} megatron.enable torchtitan",
        "Number of threads per rank that read and verify. Default: the number of CPUs available to a rank, divided by the number "
        "of ranks on its host that share these CPUs, at most 16.",
        c=(C("sealpoint_read_options", "threads", "available CPUs divided by the ranks that share them, at most 16"),
           C("sealpoint_load_options", "threads", "as in sealpoint_read_options")),
    ),
    "share_chunks": Option(
        "bool | None", None, _rules.or_none(_rules.BOOL, "True, False or None"), "torch.load torch.dcp.StorageReader",
        "True: one rank reads data that several ranks need and sends it to the other ranks. False: each rank reads all data that "
        "it needs, which is faster if the ranks share a page cache. None: True if the ranks span several hosts. Must be equal on "
        "all ranks.",
        is_same=True,
    ),
    "verify_arrival": Option(
        "bool", False, _rules.BOOL, "torch.load torch.Checkpointer.resume",
        "After the load, compute the fingerprints of the tensors on all ranks, and compare their sums with the stored "
        "fingerprints. This detects elements that changed between the verified file and the memory of the state. The save must "
        "have used ``fingerprints``, and the load must not convert elements. The ranks together must fill each element once "
        "(replicas count once).",
        is_same=True,
    ),
    "deadline": Option(
        "float | None", DEADLINE_DEFAULT_SECONDS, _rules.SECONDS, f"torch.save store {_LOADS}",
        "Timeout in seconds for each exchange with the other ranks. None: no timeout.", "seconds", is_same=True,
        compared=_seconds, saver=Saver("deadline"), c=(C("sealpoint_saver_options", "deadline_ms", "for one exchange"),),
    ),
    "background_deadline": Option(
        "float | None", BACKGROUND_DEADLINE_DEFAULT_SECONDS, _rules.SECONDS,
        "torch.save_async torch.Checkpointer jax.save_async megatron.enable",
        "Timeout in seconds for the part of the save that runs after the call has returned. None: no timeout.", "seconds",
        is_same=True, compared=_seconds, saver=Saver("background_deadline"),
        c=(C("sealpoint_saver_options", "background_deadline_ms", "for a background save"),),
    ),
    "memory_budget_bytes": Option(
        "int | None", None, _rules.or_none(_rules.SOME_BYTES, _rules.SOME_BYTES.expected), f"torch.save store torch.load {_LOADS}",
        "Size of the staging memory. The first save of a group fixes this size. Default: at most a quarter of the "
        "memory available to this process, divided by the number of ranks on the machine. A control group may limit "
        "the available memory.", "bytes",
        own={
            "torch.dcp.StorageWriter": Own("Size of the staging memory. The first save of the process group fixes this size."),
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
