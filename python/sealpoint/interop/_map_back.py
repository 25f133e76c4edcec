# SPDX-License-Identifier: Apache-2.0
"""Applies mapping rules in reverse: joins tensors that the rules split."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from sealpoint._dtypes import numpy
from sealpoint._errors import InvalidArgumentError, NotFoundError
from sealpoint._tree import KIND, Node, text_of
from sealpoint._tree_paths import kind_of
from sealpoint.interop import _boxes
from sealpoint.interop._boxes import Box, Extents
from sealpoint.interop._dtypes import ITEM_SIZE
from sealpoint.interop._map import Rule, first_rule, put
from sealpoint.interop._select import as_mapping, leaves, with_tree
from sealpoint.interop._source import Reader, State, Tensor


@dataclasses.dataclass(frozen=True)
class _Piece:
    """A box of the joined tensor. It is the source box at ``offset``, with a one-element axis inserted at ``axis``."""

    box: Box
    source: Tensor
    offset: Extents
    axis: int | None


class _JoinedTensor:
    def __init__(self, name: str, shape: Extents, pieces: Sequence[_Piece]) -> None:
        self.name, self.shape, self.pieces = name, shape, pieces
        self.dtype = pieces[0].source.dtype

    @property
    def boxes(self) -> Sequence[Box]:
        return [_boxes.whole(self.shape)]

    @property
    def is_protected(self) -> bool:
        return all(piece.source.is_protected for piece in self.pieces)

    def reader(self, memory_bytes: int) -> Reader:
        return _JoinedReader(self, memory_bytes)


class _JoinedReader:
    def __init__(self, tensor: _JoinedTensor, memory_bytes: int) -> None:
        self._tensor, self._memory_bytes = tensor, memory_bytes
        self._readers: dict[str, Reader] = {}

    def read(self, box: Box, out: memoryview) -> None:
        item_size = ITEM_SIZE[self._tensor.dtype]
        target = numpy().frombuffer(out, "u1").reshape(*box.extent, item_size)
        for piece in self._tensor.pieces:
            shared = _boxes.common(box, piece.box)
            if shared is None:
                continue
            data = memoryview(bytearray(shared.size * item_size))
            local = _without(_boxes.within(shared, piece.box), piece.axis)
            moved = Box(tuple(x + y for x, y in zip(local.offset, piece.offset, strict=True)), local.extent)
            self._reader(piece.source).read(moved, data)
            index = tuple(slice(x, x + n) for x, n in zip(*_boxes.within(shared, box), strict=True))
            target[index] = numpy().frombuffer(data, "u1").reshape(*shared.extent, item_size)

    def finish(self) -> None:
        for reader in self._readers.values():
            reader.finish()

    def _reader(self, source: Tensor) -> Reader:
        if source.name not in self._readers:
            self._readers[source.name] = source.reader(self._memory_bytes)
        return self._readers[source.name]


def _without(box: Box, axis: int | None) -> Box:
    if axis is None:
        return box
    return Box(*(extents[:axis] + extents[axis + 1 :] for extents in box))


class _Group:
    """The tensors that are joined into one tensor, by layer and part."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.sources: dict[tuple[int, str], Tensor] = {}


def apply_back(state: State, rules: Sequence[Rule]) -> State:
    """Returns a state, in one mapping, from which the rules would build the tensors of ``state``. Values are kept.

    Tensors and rows that the rules dropped are not restored. Raises NotFoundError if no rule builds a tensor, if a rule matches no
    tensor, or if a layer or part is missing. Raises InvalidArgumentError if shapes or dtypes are incompatible, or if two tensors
    get the same name.
    """
    compiled = [(rule, _pattern(rule)) for rule in rules if rule.to is not None]
    groups: dict[str, _Group] = {}
    tree: dict[str, Node] = {}
    for path, node in leaves(state.tree):
        name = text_of(path)
        if kind_of(node) != "tensor":
            put(tree, name, node)
            continue
        rule, match = first_rule(compiled, name, "makes")
        members = match.groupdict()
        group = groups.setdefault(_name(rule, members), _Group(rule))
        key = (int(members.get("layer") or 0), members.get("part") or rule.split[0][0])
        if group.rule is not rule or key in group.sources:
            raise InvalidArgumentError("produced from more than one tensor or by more than one rule", tensor=name)
        group.sources[key] = state.tensors[node["name"]]
    unused = [rule.to for rule, _ in compiled if all(group.rule is not rule for group in groups.values())]
    if unused:
        raise NotFoundError(f"no tensor matches the result of the rule for {unused[0]!r}", path=state.path)
    tensors = dict(state.tensors)
    for name, group in groups.items():
        put(tree, name, {KIND: "tensor", "name": name})
        tensors[name] = _joined(name, group)
    return with_tree(state, as_mapping(tree), tensors, state.objects)


def _pattern(rule: Rule) -> re.Pattern[str]:
    """Returns a pattern for the names that a rule generates."""
    stars = sum(c in "*?" for c in rule.source)
    seen: set[str] = set()

    def group(name: str) -> str:
        if name in seen:
            return f"(?P={'star' + name if name.isdecimal() else name})"
        seen.add(name)
        if name == "layer" and rule.unstack is not None:
            return r"(?P<layer>0|[1-9]\d{0,8})"
        if name == "part":
            return f"(?P<part>{'|'.join(re.escape(part) for part, _ in rule.split)})"
        if name.isdecimal() and 1 <= int(name) <= stars:
            return f"(?P<star{name}>.*)"
        raise InvalidArgumentError(f"{rule.to!r} names {{{name}}}, which is nothing of its rule")

    texts = re.split(r"\{([^}]*)\}", rule.to or "")
    compiled = re.compile("".join(group(t) if i % 2 else re.escape(t) for i, t in enumerate(texts)), re.DOTALL)
    needed = {str(i + 1) for i in range(stars)}
    needed |= {"layer"} if rule.unstack is not None else set()
    needed |= {"part"} if len(rule.split) > 1 else set()
    if needed - seen:
        raise InvalidArgumentError(f"{rule.to!r} lacks {{{min(needed - seen)}}}, so the source cannot be determined")
    return compiled


def _name(rule: Rule, members: dict[str, str | None]) -> str:
    """Reconstructs the name of the joined tensor, which matched the rule's ``source``."""
    stars = iter(range(1, len(rule.source) + 1))
    return "".join((members[f"star{next(stars)}"] or "") if c in "*?" else c for c in rule.source)


def _joined(name: str, group: _Group) -> Tensor:
    rule, sources = group.rule, group.sources
    layers = range(1 + max(layer for layer, _ in sources))
    for layer in layers:
        for part, _ in rule.split:
            if (layer, part) not in sources:
                raise NotFoundError(f"part {part!r} of layer {layer} is missing, but is needed for it", tensor=name)
    first = sources[0, rule.split[0][0]]
    total = sum(weight for _, weight in rule.split)
    unit = first.shape[0] // (rule.split[0][1] * rule.groups) if first.shape else 0
    for (_, part), source in sources.items():
        rows = dict(rule.split)[part] * unit * rule.groups
        expected = (rows, *first.shape[1:]) if first.shape else ()
        if (source.dtype, source.shape) != (first.dtype, expected):
            raise InvalidArgumentError(
                f"it is {source.dtype} {list(source.shape)}, expected {first.dtype} {list(expected)} beside {first.name!r}",
                tensor=source.name,
            )
    plain: Extents = (total * unit * rule.groups, *first.shape[1:]) if first.shape else ()
    axis = rule.unstack
    if axis is not None and axis > len(plain):
        raise InvalidArgumentError(f"shape is {list(plain)}, to which no axis {axis} can be added", tensor=name)
    pieces = []
    for layer in layers:
        for offset, box, part in _places(rule, unit, plain):
            if axis is not None:
                box = Box(
                    (*box.offset[:axis], layer, *box.offset[axis:]), (*box.extent[:axis], 1, *box.extent[axis:])
                )
            pieces.append(_Piece(box, sources[layer, part], offset, axis))
    shape = plain if axis is None else (*plain[:axis], len(layers), *plain[axis:])
    return _JoinedTensor(name, shape, pieces)


def _places(rule: Rule, unit: int, shape: Extents) -> list[tuple[Extents, Box, str]]:
    """Returns, for each part and each group of rows, the position in the source, the box, and the part."""
    if not shape:
        return [((), Box((), ()), rule.split[0][0])]
    total = sum(weight for _, weight in rule.split)
    zeros, rest = (0,) * (len(shape) - 1), shape[1:]
    places = []
    for number in range(rule.groups):
        begin = number * total * unit
        for part, weight in rule.split:
            rows = weight * unit
            places.append(((number * rows, *zeros), Box((begin, *zeros), (rows, *rest)), part))
            begin += rows
    return places
