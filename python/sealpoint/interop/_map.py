# SPDX-License-Identifier: Apache-2.0
"""Tensors built from boxes of other tensors, such as stacked layers and interleaved parts.

docs/guides/convert.md documents the file of rules.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

from sealpoint._arguments import Path, local_path_of
from sealpoint._dtypes import numpy
from sealpoint._errors import InvalidArgumentError, NotFoundError
from sealpoint._patterns import pattern
from sealpoint._tree import KIND, Node, text_of
from sealpoint._tree_paths import kind_of
from sealpoint.interop import _boxes
from sealpoint.interop._boxes import Box, Extents
from sealpoint.interop._dtypes import ITEM_SIZE
from sealpoint.interop._files import read_whole
from sealpoint.interop._select import as_mapping, leaves, with_tree
from sealpoint.interop._source import Reader, State, Tensor

_MEMBERS = {"from", "to", "drop", "unstack", "split", "groups", "rows"}


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule for tensors with matching names.

    In ``to``, ``{1}``, ``{2}``… stand for the text that each ``*`` of ``source`` matched. ``{layer}`` stands for the position along
    the unstacked axis, and ``{part}`` for the name of a part of ``split``. The first axis consists of ``groups`` equal groups;
    ``split`` divides each group among the parts, in proportion to their weights. ``rows`` is the number of rows to keep if the
    tensor is padded.
    """

    source: str
    to: str | None
    unstack: int | None = None
    split: tuple[tuple[str, int], ...] = (("", 1),)
    groups: int = 1
    rows: int | None = None


class _PartsTensor:
    """A tensor built from boxes.

    ``parts`` lists the boxes, and the offset of each box in the source tensor (without the unstacked axis).
    """

    def __init__(
        self, name: str, source: Tensor, shape: Extents, parts: Sequence[tuple[Box, Extents]], layer: tuple[int, int] | None
    ) -> None:
        self.name, self.source, self.shape, self.parts, self.layer = name, source, shape, parts, layer
        self.dtype = source.dtype

    @property
    def boxes(self) -> Sequence[Box]:
        return [_boxes.whole(self.shape)]

    @property
    def is_protected(self) -> bool:
        return self.source.is_protected

    def reader(self, memory_bytes: int) -> Reader:
        return _PartsReader(self, self.source.reader(memory_bytes))


class _PartsReader:
    def __init__(self, tensor: _PartsTensor, reader: Reader) -> None:
        self._tensor, self._reader = tensor, reader

    def read(self, box: Box, out: memoryview) -> None:
        item_size = ITEM_SIZE[self._tensor.dtype]
        for part, offset in self._tensor.parts:
            shared = _boxes.common(box, part)
            if shared is None:
                continue
            moved = tuple(x - y + z for x, y, z in zip(shared.offset, part.offset, offset, strict=True))
            source = self._with_layer(Box(moved, shared.extent))
            if shared == box:
                return self._reader.read(source, out)
            data = memoryview(bytearray(shared.size * item_size))
            self._reader.read(source, data)
            local = _boxes.within(shared, box)
            index = tuple(slice(x, x + n) for x, n in zip(*local, strict=True))
            array = numpy().frombuffer(out, "u1").reshape(*box.extent, item_size)
            array[index] = numpy().frombuffer(data, "u1").reshape(*shared.extent, item_size)

    def finish(self) -> None:
        self._reader.finish()

    def _with_layer(self, box: Box) -> Box:
        if self._tensor.layer is None:
            return box
        axis, number = self._tensor.layer
        return Box((*box.offset[:axis], number, *box.offset[axis:]), (*box.extent[:axis], 1, *box.extent[axis:]))


def read_rules(path: Path) -> list[Rule]:
    """Reads rules. Raises InvalidArgumentError, which names the rule, NotFoundError and IoError."""
    text = local_path_of(path, "mapping", "such files are small")
    data = read_whole(text)
    try:
        content = json.loads(data)
        if not isinstance(content, dict) or set(content) != {"rules"}:
            raise ValueError("expected an object with rules")
        return [_rule(item) for item in content["rules"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidArgumentError(f"not a file of rules: {error}", path=text) from None


def _rule(one: Any) -> Rule:
    if not isinstance(one, dict) or set(one) - _MEMBERS or type(one.get("from")) is not str:
        raise ValueError(f"found {one!r:.100}, expected a rule with members of {', '.join(sorted(_MEMBERS))}")
    if (one.get("drop") is True) == (type(one.get("to")) is str):
        raise ValueError(f"rule for {one['from']!r} has to have either to or drop")
    split = one.get("split", {"": 1})
    numbers = [one.get("unstack", 0), one.get("groups", 1), one.get("rows", 1), *split.values()]
    if not split or any(type(n) is not int or n < 0 for n in numbers) or min(numbers[1:]) < 1:
        raise ValueError(f"rule for {one['from']!r} has an invalid or non-positive number")
    return Rule(one["from"], one.get("to"), one.get("unstack"), tuple(split.items()), one.get("groups", 1), one.get("rows"))


def apply_rules(state: State, rules: Sequence[Rule], dropped: list[str]) -> State:
    """Returns a state that is one mapping: the tensors that the rules build, and all values under their existing names.

    Raises NotFoundError if a tensor has no rule, or if a rule matches no tensor. Raises InvalidArgumentError if a shape does not
    fit a rule, or if two tensors get the same name.
    """
    compiled = [(rule, pattern(rule.source)) for rule in rules]
    unused = {rule.source for rule in rules}
    tree: dict[str, Node] = {}
    tensors = dict(state.tensors)
    for path, node in leaves(state.tree):
        name = text_of(path)
        if kind_of(node) != "tensor":
            put(tree, name, node)
            continue
        rule, match = first_rule(compiled, name, "fits")
        unused.discard(rule.source)
        if rule.to is None:
            dropped.append(name)
            continue
        for made in _made(rule, state.tensors[node["name"]], match.groups()):
            put(tree, made.name, {KIND: "tensor", "name": made.name})
            tensors[made.name] = made
    if unused:
        raise NotFoundError(f"the rule for {min(unused)!r} matches no tensor", path=state.path)
    return with_tree(state, as_mapping(tree), tensors, state.objects)


def first_rule(compiled: Sequence[tuple[Rule, re.Pattern[str]]], name: str, verb: str) -> tuple[Rule, re.Match[str]]:
    """Returns the first rule that matches the whole name. Raises NotFoundError."""
    for rule, fits in compiled:
        if match := fits.fullmatch(name):
            return rule, match
    raise NotFoundError(f"no rule of the mapping {verb} it", tensor=name)


def put(tree: dict[str, Node], name: str, node: Node) -> None:
    """Adds an item. Raises InvalidArgumentError if the name exists."""
    if name in tree:
        raise InvalidArgumentError("the mapping makes this name twice", tensor=name)
    tree[name] = node


def _made(rule: Rule, source: Tensor, groups: tuple[str, ...]) -> list[_PartsTensor]:
    shape = source.shape
    layers: list[tuple[int, int] | None] = [None]
    if rule.unstack is not None:
        if rule.unstack >= len(shape):
            raise InvalidArgumentError(
                f"shape is {list(shape)}, which has no axis {rule.unstack} to unstack", tensor=source.name
            )
        layers = [(rule.unstack, number) for number in range(shape[rule.unstack])]
        shape = (*shape[: rule.unstack], *shape[rule.unstack + 1 :])
    if rule.rows is not None:
        if not shape or shape[0] < rule.rows:
            raise InvalidArgumentError(f"shape is {list(shape)}, expected {rule.rows} rows at least", tensor=source.name)
        shape = (rule.rows, *shape[1:])
    shares = _shares(rule, shape, source.name)
    result = []
    for layer in layers:
        for part, boxes in shares.items():
            rows = sum(box.extent[0] for box, _ in boxes) if shape else 0
            made_shape = (rows, *shape[1:]) if shape else ()
            name = _name(rule, groups, layer, part)
            result.append(_PartsTensor(name, source, made_shape, boxes, layer))
    return result


def _name(rule: Rule, groups: tuple[str, ...], layer: tuple[int, int] | None, part: str) -> str:
    known = {
        **{str(i): text for i, text in enumerate(groups, 1)},
        "part": part,
        "layer": "" if layer is None else str(layer[1]),
    }

    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise InvalidArgumentError(f"{rule.to!r} names {{{match[1]}}}, expected one of {', '.join(known)}")
        return known[match[1]]

    return re.sub(r"\{([^}]*)\}", value, rule.to or "")


def _shares(rule: Rule, shape: Extents, name: str) -> dict[str, list[tuple[Box, Extents]]]:
    """Returns the boxes of each part, and the position of each box in the source tensor."""
    if not shape:
        return {part: [(Box((), ()), ())] for part, _ in rule.split}
    total = sum(weight for _, weight in rule.split)
    unit = shape[0] // (total * rule.groups)
    if unit * total * rule.groups != shape[0]:
        raise InvalidArgumentError(
            f"{shape[0]} rows cannot be divided among {rule.groups} groups of {total} equal parts", tensor=name
        )
    rest, zeros = shape[1:], (0,) * (len(shape) - 1)
    result: dict[str, list[tuple[Box, Extents]]] = {}
    begin = 0
    for part, weight in rule.split:
        rows = weight * unit
        result[part] = [
            (Box((group * rows, *zeros), (rows, *rest)), (group * total * unit + begin, *zeros))
            for group in range(rule.groups)
        ]
        begin += rows
    return result
