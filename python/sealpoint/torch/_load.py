# SPDX-License-Identifier: Apache-2.0
"""Loads of torch states."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection, Iterable, MutableMapping, Sequence
from typing import Any, NamedTuple, Protocol, Unpack

import torch

from sealpoint import _sealpoint, _tree
from sealpoint._arguments import path_of, threads_of
from sealpoint._checkpoint import Checkpoint, Conversion, Path, Rounding
from sealpoint._checkpoint import open_own as open_checkpoint
from sealpoint._errors import CorruptError, InvalidArgumentError, MismatchError, NotFoundError, UnsupportedError
from sealpoint._keywords import refuses_unknown, takes
from sealpoint._native import check_one
from sealpoint._option_table import LOAD_BUDGET_DEFAULT_BYTES
from sealpoint._ranks.call import Call
from sealpoint._ranks.loads import open_reader, read_tree, tree_of_names, values_of_rank
from sealpoint.torch import _differences, _optimizers, _parameters, _shards, _versions
from sealpoint.torch._arguments import check, checked_call
from sealpoint.torch._contract import Contract
from sealpoint.torch._dtypes import DTYPE_OF
from sealpoint.torch._matching import Matching
from sealpoint.torch._options import LoadKeywords, LoadOptions
from sealpoint.torch._rename import Renaming, part_of
from sealpoint.torch._session import session_of, tells_other_ranks
from sealpoint.torch._state import UNITED, agree

# The wider dtypes for each stored dtype.
_WIDER = {"bf16": ("f32", "f64"), "f16": ("f32", "f64"), "f32": ("f64",)}


class Stateful(Protocol):
    """An object with its own state, such as a module or an optimizer."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state_dict: Any, /) -> Any: ...


State = MutableMapping[Any, Any] | list[Any] | Stateful


class LoadReport(NamedTuple):
    """Result of a load on this rank, with findings of the form (kind, path, detail).

    Each difference for which the contract says "report" is a finding. An object without any stored state is a finding of kind
    "missing", unless the contract's ``missing`` is "error". An optimizer hyper-parameter that the load changed is a finding of kind
    "value".
    """

    bytes_requested: int
    bytes_read: int
    bytes_received: int
    findings: list[tuple[str, str, str]]


@tells_other_ranks
@takes(LoadKeywords, LoadOptions)
def load(state_dict: State, path: Path, **options: Unpack[LoadKeywords]) -> LoadReport:
    """Fills a state in place: writes tensors into their memory, in any layout, and replaces values in their containers.

    Collective: all ranks call it. The number of ranks and the layout of the state may differ from the save. Values that are not
    tensors change only after all bytes were verified. After an error the content of tensors is unspecified.

    Args:
        state_dict: As for ``save``: a mapping, a list or an object. Objects with ``load_state_dict()`` receive their state at the
            end. In a new process, an optimizer has no state yet. The load then creates tensors for this state on the devices and
            meshes of the parameters. In this case, pass the optimizer itself. The result of its ``state_dict()`` cannot be filled,
            and would raise an error.
        path: Directory or URL of a checkpoint.
        allow_pickle: Unpickle values that were saved with ``allow_pickle``. Unpickling runs code chosen by the writer
            of the file.
        contract: Action for each kind of difference between checkpoint and state. Default: each difference is an error.
            See ``Contract``.
        convert: Conversion of elements to the dtype of the state. "widen" converts only to a floating-point dtype that
            can represent every value of the stored dtype (bf16 and f16 to f32 or f64, f32 to f64). "exact" requires
            that the new dtype represents each stored value. "nearest" rounds to nearest even. Default: no conversion.
        all_ranks: Fill each ``per_rank`` place with a list of the values of all ranks that saved, in rank order. The
            program can then redistribute the values over any number of loading ranks. Tensors in the list are new and
            on the CPU.
        rename: Maps stored names to names in the state: ``{"model.backbone.*": "model.encoder.*"}``; ``*`` matches any
            characters. A pattern that matches no stored name is an error.
        threads: Number of threads per rank that read and verify. Default: the number of CPUs available to a rank,
            divided by the number of ranks on its host that share these CPUs, at most 16.
        share_chunks: True: one rank reads data that several ranks need and sends it to the other ranks. False: each
            rank reads all data that it needs, which is faster if the ranks share a page cache. None: True if the ranks
            span several hosts. Must be equal on all ranks.
        verify_arrival: After the load, compute the fingerprints of the tensors on all ranks, and compare their sums
            with the stored fingerprints. This detects elements that changed between the verified file and the memory of
            the state. The save must have used ``fingerprints``, and the load must not convert elements. The ranks
            together must fill each element once (replicas count once).
        memory_budget_bytes: Maximum staging memory per rank. Default: 256 MiB.
        process_group, deadline: As for ``sealpoint.torch.save``.
        progress: As for ``sealpoint.Checkpoint.read``.

    Returns:
        A LoadReport of this rank.

    Raises:
        NotFoundError: the path does not exist.
        UncommittedError: the directory has no commit marker.
        IncompleteError: a file is missing or too short.
        CorruptError: a digest does not match.
        MismatchError: state and checkpoint differ. The error counts the differences and names the first few paths.
        InvalidArgumentError: the state cannot be filled in place, or an argument is invalid.
        UnsupportedError: a value has an unsupported type.
        IoError: the storage failed.
        TimeoutError: a rank did not answer within ``deadline``.
        CommError: the communication between ranks failed.

    Errors are the same on all ranks.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> _ = sp.save({"model": torch.nn.Linear(4, 4), "step": 7}, "checkpoint")
        >>> state = {"model": torch.nn.Linear(4, 4), "step": 0}
        >>> sp.load(state, "checkpoint").findings
        []
        >>> state["step"]
        7
    """
    chosen = LoadOptions(**options)
    if chosen.contract is None:
        chosen = dataclasses.replace(chosen, contract=Contract())
    with checked_call(session_of(chosen.process_group), "load", path, chosen) as call, torch.inference_mode(False):
        report, copies = _load(call, state_dict, path, chosen)
    for copy in copies:
        warnings.warn(
            f"the hyper-parameters of {copy} were loaded into a copy, because state_dict() returns copies: call the "
            f"optimizer's load_state_dict() with this copy, or put the optimizer itself into the state",
            RuntimeWarning, stacklevel=3,  # the caller of the decorated function
        )
    return report


def _load(call: Call, state: State, path: Path, options: LoadOptions) -> tuple[LoadReport, list[str]]:
    """Returns the report, and the paths of optimizers whose state was loaded only into a copy (see ``Matching.apply``)."""
    budget = options.memory_budget_bytes or LOAD_BUDGET_DEFAULT_BYTES
    reader, contract = open_reader(call, path, budget, check_one), options.contract
    assert contract is not None
    node = read_tree(reader)
    versions, parameters = _read_tree_object(reader, _versions.OBJECT), _read_tree_object(reader, _parameters.OBJECT)
    united = dict.fromkeys(_read_tree_object(reader, UNITED))
    of_all_ranks = _values_of_all_ranks(reader, node) if options.all_ranks else None
    renaming = None if options.rename is None else Renaming(options.rename, node)
    if renaming is not None:
        node, versions, united = renaming.tree, renaming.prefixes(versions), renaming.prefixes(united)
        parameters = {path: [[renaming.name(name) for name in names] for names in groups] for path, groups in parameters.items()}
        of_all_ranks = None if of_all_ranks is None else [renaming.keys(values) for values in of_all_ranks]

    def make() -> tuple[Matching, bytes]:
        rank, size = call.rank, call.size
        rank_values = values_of_rank(reader, node, rank) if of_all_ranks is None else {}
        rank_values = rank_values if renaming is None else renaming.keys(rank_values)
        matching = Matching(node, rank_values, rank, size, contract, options.allow_pickle, _look_in(reader), versions, parameters,
                            united, of_all_ranks)
        matching.match(state)
        mask = mask_of(matching.stored, matching.matched)
        check_widening(options.convert, matching.destinations.slots, Checkpoint(reader.checkpoint(), 1))
        matching.forbidden += _differences.of_tensors(
            reader.differing(matching.destinations.slots), _stored_in(reader),
            dtype=contract.dtype == "error" and options.convert is None, shape=contract.shape == "error",
        )
        return matching, bytes([matching.destinations.must_compare, bool(matching.forbidden)]) + mask

    matching, answers = agree(call, make, "compared their states with the checkpoint")
    unmatched = unmatched_of(matching.stored, [answer[2:] for answer in answers])
    if any(answer[1] for answer in answers) or (unmatched and contract.unexpected == "error"):
        if contract.unexpected == "error":
            matching.forbidden += [("unexpected", name, "") for name in unmatched]
        _differences.raise_together(call, matching.forbidden, unmatched, "contract=Contract.partial()")
    if matching.stored and len(unmatched) == len(matching.stored):
        raise MismatchError(
            "the state and the checkpoint have no name in common, so nothing would be loaded; stored names are "
            f"{_some(matching.stored)}", path=path_of(path),
        )
    if contract.unexpected == "report":
        matching.findings += [("unexpected", name, "no rank's state has it") for name in unmatched]
    report = reader.load(
        slots=matching.destinations.slots,
        # Missing and unexpected places were already found by comparing the tree. Objects of other programs are not compared.
        contract=_sealpoint.LoadContract(dtype=contract.dtype, shape=contract.shape, coverage=contract.coverage),
        convert=rounding_of(options.convert),
        threads=threads_of(options.threads),
        memory_budget_bytes=budget,
        share_chunks=call.spans_hosts() if options.share_chunks is None else options.share_chunks,
        progress=options.progress,
        verify_arrival=options.verify_arrival,
    )
    if any(answer[0] for answer in answers):
        agree(call, lambda: (matching.destinations.compare(), b""), "compared the results of two loads")

    # A load_state_dict() method of the program may fail on one rank.
    copies, _ = agree(call, lambda: (matching.apply(), b""), "set the values of their states")
    return LoadReport(report.plan.bytes_requested, report.bytes_read, report.bytes_received,
                      matching.findings + list(report.findings)), copies


def rounding_of(convert: Conversion | None) -> Rounding | None:
    """Returns the rounding for the reader. Call ``check_widening`` first."""
    return "exact" if convert == "widen" else convert


def check_widening(convert: Conversion | None, slots: Sequence[_shards.Slot], checkpoint: Checkpoint) -> None:
    """Raises MismatchError if the dtype of the state is not wider than the stored dtype."""
    if convert != "widen":
        return
    for slot in slots:
        stored = checkpoint[slot.name].dtype_name if slot.name in checkpoint else slot.dtype
        if stored != slot.dtype and slot.dtype not in _WIDER.get(stored, ()):
            raise MismatchError(
                f"dtype: stored as {stored}, requested as {slot.dtype}, which cannot represent all of its values; "
                'convert="exact" accepts values that fit, convert="nearest" rounds', tensor=slot.name,
            )


def _some(names: Sequence[str]) -> str:
    """Lists the first names and the number of remaining names, as text."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _read_tree_object(reader: _sealpoint.CollectiveReader, name: str) -> Any:
    """Reads an object stored next to the tree, such as the versions of modules. Collective."""
    if name not in Checkpoint(reader.checkpoint(), 1).objects:
        return {}
    return _tree.parse(reader.read_object(name))


def _values_of_all_ranks(reader: _sealpoint.CollectiveReader, node: Any) -> list[dict[str, Any]]:
    """Reads the ``per_rank`` values of all ranks that saved. Collective: the ranks together read each object only once."""
    count = max((child["size"] for child in _tree.nodes_of(node, ("per_rank",))), default=0)
    return [_tree.parse(reader.read_object(_tree.rank_object(rank))) for rank in range(count)]


def _look_in(reader: _sealpoint.CollectiveReader) -> _optimizers.Look:
    stored = _stored_in(reader)

    def look(name: str) -> tuple[tuple[int, ...], torch.dtype]:
        found = stored(name)
        if found is None:
            raise CorruptError("the tree names a missing tensor", tensor=name)
        if found[0] not in DTYPE_OF:
            raise UnsupportedError(f"this torch has no dtype {found[0]}", tensor=name)
        return found[1], DTYPE_OF[found[0]]

    return look


def _stored_in(reader: _sealpoint.CollectiveReader) -> _differences.Stored:
    handle = reader.checkpoint()

    def stored(name: str) -> tuple[str, tuple[int, ...]] | None:
        if not handle.has_tensor(name):
            return None
        info = handle.tensor(name)
        return info.dtype, info.shape

    return stored


def mask_of(stored: Sequence[str], matched: Collection[str]) -> bytes:
    """Returns a bitmask with one bit per stored name. A bit is set if this rank's state has the name."""
    if len(matched) >= len(stored) and set(stored) <= set(matched):
        return ((1 << len(stored)) - 1).to_bytes((len(stored) + 7) // 8, "little")
    mask = bytearray((len(stored) + 7) // 8)
    for i, name in enumerate(stored):
        if name in matched:
            mask[i >> 3] |= 1 << (i & 7)
    return bytes(mask)


def unmatched_of(stored: Sequence[str], masks: list[bytes]) -> list[str]:
    """Returns the stored names that are in no rank's state."""
    matched = 0
    for mask in masks:
        matched |= int.from_bytes(mask, "little")
    if matched == (1 << len(stored)) - 1:
        return []
    bits = matched.to_bytes((len(stored) + 7) // 8, "little")
    return [name for i, name in enumerate(stored) if not bits[i >> 3] >> (i & 7) & 1]


@refuses_unknown
def load_full(path: Path, *, keys: Sequence[str] | None = None, device: torch.device | str = "cpu", allow_pickle: bool = False,
              threads: int | None = None) -> Any:
    """Loads the whole state into new containers and tensors, as torch.load does, and returns the state. Not collective.

    Each ``per_rank`` value becomes a list with one value per rank, in rank order. Mappings such as OrderedDict become
    dicts.

    Args:
        keys: Patterns of names to load, such as ["model", "optimizer.param_groups"]. The name of a mapping selects its
            whole content. ``*`` matches any characters. The result includes the enclosing mappings. A pattern that
            matches nothing is an error. Default: load everything.
        path: Directory or URL of a checkpoint.
        device: Device of the tensors.
        allow_pickle, threads: As for ``load``.

    Raises:
        UnsupportedError: a value has an unsupported type, or torch has no equivalent of a stored dtype.
        Error: as for ``sealpoint.open`` and ``sealpoint.Checkpoint.read``.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> _ = sp.save({"w": torch.ones(2), "args": {"lr": 0.1}}, "checkpoint")
        >>> sp.load_full("checkpoint", keys=["args"])
        {'args': {'lr': 0.1}}
    """
    check(allow_pickle=allow_pickle, keys=keys)
    check_one(path_of(path))
    with open_checkpoint(path) as checkpoint, torch.inference_mode(False):
        has_tree = _tree.OBJECT in checkpoint.objects
        tree = _tree.parse(bytes(checkpoint.objects[_tree.OBJECT])) if has_tree else tree_of_names(checkpoint)
        tree = _with_rank_values(tree if keys is None else part_of(tree, keys), _rank_values(checkpoint), ())
        names: Iterable[str] = checkpoint if keys is None else {item["name"]: None for item in _tree.nodes_of(tree, ("tensor",))}
        tensors: dict[str, torch.Tensor] = {}
        slots = []
        for name in names:
            stored = checkpoint[name]
            if stored.dtype_name not in DTYPE_OF:
                raise UnsupportedError(f"this torch has no dtype {stored.dtype_name}", tensor=name)
            tensors[name] = torch.empty(stored.shape, dtype=DTYPE_OF[stored.dtype_name], device=device)
            slots.append((name, tensors[name]))
        checkpoint.read({name: _shards.destination_of(tensor) for name, tensor in slots}, threads=threads)
        if not has_tree:
            return dict(tensors)
        whole = _tree.Decoder(lambda name: tensors[name], allow_pickle).decode(tree)
        if _versions.OBJECT not in checkpoint.objects:
            return whole
        return _versions.attach_all(whole, _tree.parse(bytes(checkpoint.objects[_versions.OBJECT])))


def _rank_values(checkpoint: Any) -> list[Any]:
    values: list[Any] = []
    while _tree.rank_object(len(values)) in checkpoint.objects:
        values.append(_tree.parse(bytes(checkpoint.objects[_tree.rank_object(len(values))])))
    return values


def _with_rank_values(node: Any, ranks: list[Any], path: _tree.Path) -> Any:
    """Returns the tree, with each ``per_rank`` node replaced by the list of its values."""
    if isinstance(node, list):
        return [_with_rank_values(child, ranks, (*path, i)) for i, child in enumerate(node)]
    if not isinstance(node, dict):
        return node
    kind = node.get(_tree.KIND)
    if kind == "per_rank":
        name = _tree.text_of(path)
        for rank in range(node["size"]):
            if rank >= len(ranks) or name not in ranks[rank]:
                raise CorruptError(f"the value of rank {rank} of {node['size']} is not in the checkpoint", object=name)
        return [values[name] for values in ranks[: node["size"]]]
    if kind == "dict":
        decode = _tree.Decoder(lambda name: name).decode
        items = [
            [key, _with_rank_values(value, ranks, (*path, _tree.part_of(decode(key))))] for key, value in node["items"]
        ]
        return {**node, "items": items}
    if kind == "tuple":
        return {**node, "items": _with_rank_values(node["items"], ranks, path)}
    if kind is None:
        return {key: _with_rank_values(value, ranks, (*path, key)) for key, value in node.items()}
    return node
