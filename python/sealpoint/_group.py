# SPDX-License-Identifier: Apache-2.0
"""Groups of tensors: the parts of names before a separator."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sealpoint._arguments import check
from sealpoint._errors import NotFoundError
from sealpoint._hints import nearest

T = TypeVar("T")


class Group(Mapping[str, Any]):
    """The tensors whose names begin with the same parts: a mapping from the next part of a name to a Group or a lazy Tensor.

    Use ``checkpoint.group()`` to get the group of all tensors. Keys are in the order of the names. ``group["a/b"]`` is the item "b"
    of the group "a". If a name belongs to both a tensor and a group, the key of the group ends in the separator. Thread-safe. No
    method is collective.
    """

    def __init__(self, checkpoint: Mapping[str, Any], names: Sequence[str], prefix: str, separator: str) -> None:
        self._checkpoint, self._names = checkpoint, names
        self._prefix, self._separator = prefix, separator  # the prefix is empty, or ends in the separator

    @property
    def name(self) -> str:
        """Beginning of the names, without the last separator. Empty for the group of all tensors."""
        return self._prefix.removesuffix(self._separator)

    @property
    def tensors(self) -> list[Any]:
        """Tensors of this group, including the tensors of its subgroups."""
        begin = bisect_left(self._names, self._prefix)
        return [self._checkpoint[name] for name in self._names[begin : self._end_of(self._prefix)]]

    def __getitem__(self, name: str) -> Any:
        """Returns the Group or the lazy Tensor with this name within the group, such as "a" or "a/b".

        Raises NotFoundError (a KeyError), which suggests the most similar key.
        """
        check(name=name)
        if (item := self._find(name)) is not None:
            return item
        found = nearest(name, list(self))
        hint = f"; the nearest is {found}" if found else ""
        raise NotFoundError(f"neither a tensor nor a group{hint}", tensor=self._prefix + name)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._children())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._find(path) is not None

    def visititems(self, function: Callable[[str, Any], T | None]) -> T | None:
        """Calls ``function(path, item)`` for each subgroup and tensor below this group, as h5py does.

        ``path`` is relative to this group. Stops as soon as a call returns a value other than None, and returns this value.
        """
        check(function=function)
        stack = [self._children()]
        while stack:
            _, item = next(stack[-1], ("", None))
            if item is None:
                stack.pop()
                continue
            found = function(item.name[len(self._prefix) :], item)
            if found is not None:
                return found
            if isinstance(item, Group):
                stack.append(item._children())
        return None

    # The inherited __eq__ compares values, and would read all tensors.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<sealpoint.Group {self.name!r}: {len(self)} items>"

    def _children(self) -> Iterator[tuple[str, Any]]:
        at, end = bisect_left(self._names, self._prefix), self._end_of(self._prefix)
        while at < end:
            part, separator, _ = self._names[at][len(self._prefix) :].partition(self._separator)
            name = self._prefix + part
            if separator:
                yield part + separator if name in self._checkpoint else part, self._group(name + separator)
                at = self._end_of(name + separator)
            else:
                yield part, self._checkpoint[name]
                at += 1

    def _find(self, path: str) -> Any:
        name = self._prefix + path
        if name in self._checkpoint:
            return self._checkpoint[name]
        prefix = name if path.endswith(self._separator) else name + self._separator
        return self._group(prefix) if bisect_left(self._names, prefix) < self._end_of(prefix) else None

    def _group(self, prefix: str) -> Group:
        return Group(self._checkpoint, self._names, prefix, self._separator)

    def _end_of(self, prefix: str) -> int:
        """Returns the position after the last name that begins with the prefix. The names are sorted."""
        return bisect_right(self._names, prefix, key=lambda name: name[: len(prefix)])


def group_of(checkpoint: Mapping[str, Any], name: str, separator: str) -> Group:
    """Returns a group of tensors, as ``Checkpoint.group`` does."""
    check(name=name, separator=separator)
    names = list(checkpoint)
    prefix = name + separator if name and not name.endswith(separator) else name
    group = Group(checkpoint, names, prefix, separator)
    if prefix and len(group) == 0:
        found = nearest(name, sorted({text.rpartition(separator)[0] for text in names} - {""}))
        hint = f"; the nearest is {found}" if found else ""
        raise NotFoundError(f"no name begins with {prefix!r}, expected the name of a group{hint}")
    return group
