# SPDX-License-Identifier: Apache-2.0
"""Pickles as plain descriptions: nothing is imported, called or built but the classes of this file.

Understands protocols 2 to 5. Names of classes and functions that the caller does not list are refused. What a pickle
could do to the reader is bounded: its length, the count of its instructions, the length of its integers, and, while it is
decoded, the memory that its values take. Shared and cyclic structures stay as they are; who walks over them has to bound
that (sealpoint.convert._values does), and nobody may format, hash or compare them.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Container
from typing import Any

from sealpoint._errors import CorruptError, LimitExceededError, UnsupportedError
from sealpoint.convert._budget import Budget, cost_of_text

INSTRUCTIONS_MAX = 50_000_000
# What an instruction costs, in bytes: places on the stack and in a container or in what is kept. Then what it makes costs,
# and a number of what is kept that is out of order. Not less than CPython takes; the reader in C++ counts the same.
STEP_COST = 16
NUMBER_COST, TEXT_COST, CONTAINER_COST, PAIR_COST, OBJECT_COST, MARK_COST, KEPT_COST = 32, 64, 128, 80, 256, 48, 160
_INT_BYTES_MAX = 1024
_NAME_BYTES_MAX = 4096


class Global:
    """A class or function, by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Object:
    """What a class or function would make of arguments, and would be given afterwards; nothing was called."""

    __slots__ = ("args", "items", "name", "pairs", "state")

    def __init__(self, name: str, args: tuple[Any, ...]) -> None:
        self.name, self.args = name, args
        self.state: Any = None
        self.items: list[Any] = []
        self.pairs: list[tuple[Any, Any]] = []


class Dict:
    """A mapping: its entries in order."""

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []


class Set:
    __slots__ = ("is_frozen", "items")

    def __init__(self, items: list[Any], is_frozen: bool) -> None:
        self.items, self.is_frozen = items, is_frozen


class Persistent:
    """What the program that made the pickle stored elsewhere, by its id. ``view``: offset and size of a part of it."""

    __slots__ = ("id", "view")

    def __init__(self, id: Any, view: tuple[int, int] | None = None) -> None:
        self.id, self.view = id, view


def kind_name(value: Any) -> str:
    """Of its class, and of a description the class that it describes; bounded, unlike what repr() makes of a pickle."""
    return f"{type(value).__name__} of {value.name!a:.80}" if type(value) in (Global, Object) else type(value).__name__


_HANDLERS: dict[int, Callable[[Decoder], None]] = {}


class Decoder:
    """Decodes one pickle. ``handlers``: of instructions. ``needed``: so many bytes, more than there are, it would take.

    Args:
        data: all of it, and nothing else.
        known: names of classes and functions that may occur.
        budget: gets the cost of all that is made.
        path, offset: of the file, and where the pickle begins in it; for errors.
        keep_unknown: other names may occur, too, and stay descriptions as all.
    """

    handlers = _HANDLERS

    def __init__(
        self, data: bytes, known: Container[str], budget: Budget, path: str, offset: int = 0, keep_unknown: bool = False
    ) -> None:
        self.data, self.known, self.path, self.offset = data, known, path, offset
        self.budget = budget
        self.keep_unknown = keep_unknown
        self.at = self.needed = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []  # in order, as picklers count
        self.memo_beyond: dict[int, Any] = {}

    def decode(self) -> Any:
        """Errors: CorruptError, UnsupportedError (an unknown class or instruction), LimitExceededError."""
        data, handlers, budget = self.data, self.handlers, self.budget
        try:
            for _ in range(INSTRUCTIONS_MAX):
                code = data[self.at]
                self.at += 1
                budget.used += STEP_COST
                if budget.used > budget.max:
                    raise budget.exceeded(self.path)
                if code == 0x2E:  # STOP
                    return self._result()
                handler = handlers.get(code)
                if handler is None:
                    raise self.unsupported(
                        f"pickle has the instruction {_name_of(code)}, which no protocol from 2 to 5 writes"
                    )
                handler(self)
        except (IndexError, struct.error):
            self.needed = self.at + 1
            raise self.corrupt("pickle ends too early, or takes what it never put down") from None
        raise LimitExceededError(f"pickle has more than {INSTRUCTIONS_MAX} instructions", path=self.path, offset=self.offset)

    def _result(self) -> Any:
        if len(self.stack) != 1 or self.marks:
            raise self.corrupt(f"pickle ends with {len(self.stack)} values, expected 1")
        return self.stack[0]

    def corrupt(self, message: str) -> CorruptError:
        return CorruptError(message, path=self.path, offset=self.offset + self.at)

    def unsupported(self, message: str) -> UnsupportedError:
        return UnsupportedError(message, path=self.path, offset=self.offset + self.at)

    # What handlers use.

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            self.needed = end
            raise self.corrupt(f"pickle has {len(self.data) - self.at} bytes left, expected {size}")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def bytes(self, size: int) -> bytes:
        data = self.take(size)
        self.budget.add(TEXT_COST + size, self.path)
        return data

    def text(self, size: int) -> str:
        data = self.take(size)
        self.budget.add(TEXT_COST + cost_of_text(data), self.path)
        try:
            return str(data, "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.corrupt(f"string is no UTF-8: {error.reason}") from None

    def pop(self) -> Any:
        if self.marks and len(self.stack) <= self.marks[-1]:
            raise self.corrupt("pickle takes what it never put down")
        return self.stack.pop()

    def top(self) -> Any:
        if self.marks and len(self.stack) <= self.marks[-1]:
            raise self.corrupt("pickle takes what it never put down")
        return self.stack[-1]

    def pop_to_mark(self) -> list[Any]:
        if not self.marks:
            raise self.corrupt("pickle goes back to a mark that it never set")
        at = self.marks.pop()
        items = self.stack[at:]
        del self.stack[at:]
        return items

    def remember(self, index: int) -> None:
        if index == len(self.memo):
            self.memo.append(self.top())
        elif index < len(self.memo):
            self.memo[index] = self.top()
        else:
            self.budget.used += KEPT_COST
            self.memo_beyond[index] = self.top()

    def recall(self, index: int) -> None:
        if index < len(self.memo):
            self.stack.append(self.memo[index])
        elif index in self.memo_beyond:
            self.stack.append(self.memo_beyond[index])
        else:
            raise self.corrupt(f"pickle recalls value {index}, which it never kept")

    def container(self, value: Any) -> Any:
        self.budget.used += CONTAINER_COST
        return value

    def persistent(self, id: Any) -> Any:
        return self.container(Persistent(id))

    def add_global(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise self.corrupt("pickle names a class by something else than strings")
        full = f"{module}.{name}"
        if full not in self.known and not self.keep_unknown:
            raise self.unsupported(
                f"pickle names {full!a:.200}, which is none of the classes and functions that this reader knows; "
                "nothing was run"
            )
        self.budget.add(OBJECT_COST + cost_of_text(full.encode("utf-8", "surrogatepass")), self.path)
        self.stack.append(Global(full))

    def add_object(self, is_new: bool) -> None:
        args, made_by = self.pop(), self.pop()
        if type(args) is not tuple or type(made_by) is not Global:
            raise self.corrupt(f"pickle {'makes an object of' if is_new else 'calls'} what is no class or function")
        self.budget.used += OBJECT_COST
        self.stack.append(Object(made_by.name, args))

    def extend(self, items: list[Any]) -> None:
        target = self.top()
        if type(target) is list:
            target.extend(items)
        elif type(target) in (Set, Object):
            target.items.extend(items)
        else:
            raise self.corrupt(f"pickle appends to a {type(target).__name__}")

    def set_items(self, items: list[Any]) -> None:
        target = self.top()
        if type(target) not in (Dict, Object) or len(items) % 2:
            raise self.corrupt(f"pickle sets items of a {type(target).__name__}, {len(items)} keys and values")
        self.budget.used += PAIR_COST * (len(items) // 2)
        target.pairs.extend(zip(items[::2], items[1::2], strict=True))

    def build(self) -> None:
        state, target = self.pop(), self.top()
        if type(target) is not Object or target.state is not None:
            raise self.corrupt(f"pickle sets the state of a {type(target).__name__}, or sets it twice")
        target.state = state

    def integer(self, size: int, signed: bool = True) -> int:
        if size > _INT_BYTES_MAX:
            raise LimitExceededError(
                f"an integer has {size} bytes, expected {_INT_BYTES_MAX} at most",
                path=self.path,
                offset=self.offset + self.at,
            )
        self.budget.used += NUMBER_COST + 4 * size + (TEXT_COST if size > 8 else 0)
        return int.from_bytes(self.take(size), "little", signed=signed)

    def line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + _NAME_BYTES_MAX)
        if end < 0:
            if self.at + _NAME_BYTES_MAX > len(self.data):
                self.needed = len(self.data) + 1
            raise self.corrupt("a name has no end")
        text = self.text(end - self.at)
        self.at = end + 1
        return text

    def frame(self) -> None:
        size = self.number(8)
        if size > len(self.data) - self.at:
            self.needed = self.at + size
            raise self.corrupt(f"pickle has {len(self.data) - self.at} bytes left, expected {size} of a frame")

    def protocol(self) -> None:
        version = self.number(1)
        if not 2 <= version <= 5:
            raise self.unsupported(f"pickle of protocol {version}, expected 2 to 5")


def _name_of(code: int) -> str:
    names = {one.code: one.name for one in pickletools.opcodes}
    return names.get(chr(code), f"{code:#04x}")


def _tuple_of(count: int) -> Callable[[Decoder], None]:
    def handle(d: Decoder) -> None:
        items = [d.pop() for _ in range(count)]
        d.stack.append(d.container(tuple(reversed(items))))

    return handle


def _push(make: Callable[[Decoder], Any]) -> Callable[[Decoder], None]:
    return lambda d: d.stack.append(make(d))


def _mark(d: Decoder) -> None:
    d.budget.used += MARK_COST
    d.marks.append(len(d.stack))


def _float(d: Decoder) -> float:
    d.budget.used += NUMBER_COST
    value: float = struct.unpack(">d", d.take(8))[0]
    return value


def _stack_global(d: Decoder) -> None:
    name, module = d.pop(), d.pop()
    d.add_global(module, name)


def _pop(d: Decoder) -> None:
    if d.marks and len(d.stack) == d.marks[-1]:
        d.marks.pop()
    else:
        d.pop()


def _dict(d: Decoder) -> None:
    items = d.pop_to_mark()
    d.stack.append(d.container(Dict()))
    d.set_items(items)


def _set_item(d: Decoder) -> None:
    value, key = d.pop(), d.pop()
    d.set_items([key, value])


def _append(d: Decoder) -> None:
    item = d.pop()
    d.extend([item])


_HANDLERS.update(
    {
        ord(code): handler
        for code, handler in {
            "\x80": Decoder.protocol,
            "\x95": Decoder.frame,
            "(": _mark,
            "0": _pop,
            "1": lambda d: (d.pop_to_mark(), None)[1],
            "2": lambda d: d.stack.append(d.top()),
            "\x94": lambda d: d.remember(len(d.memo) + len(d.memo_beyond)),
            "q": lambda d: d.remember(d.number(1)),
            "r": lambda d: d.remember(d.number(4)),
            "h": lambda d: d.recall(d.number(1)),
            "j": lambda d: d.recall(d.number(4)),
            "N": _push(lambda d: None),
            "\x88": _push(lambda d: True),
            "\x89": _push(lambda d: False),
            "K": _push(lambda d: d.integer(1, signed=False)),
            "M": _push(lambda d: d.integer(2, signed=False)),
            "J": _push(lambda d: d.integer(4)),
            "\x8a": _push(lambda d: d.integer(d.number(1))),
            "\x8b": _push(lambda d: d.integer(d.number(4))),
            "G": _push(_float),
            "\x8c": _push(lambda d: d.text(d.number(1))),
            "X": _push(lambda d: d.text(d.number(4))),
            "\x8d": _push(lambda d: d.text(d.number(8))),
            "C": _push(lambda d: d.bytes(d.number(1))),
            "B": _push(lambda d: d.bytes(d.number(4))),
            "\x8e": _push(lambda d: d.bytes(d.number(8))),
            "\x96": _push(lambda d: d.bytes(d.number(8))),
            "}": _push(lambda d: d.container(Dict())),
            "]": _push(lambda d: d.container([])),
            ")": _push(lambda d: d.container(())),
            "\x8f": _push(lambda d: d.container(Set([], is_frozen=False))),
            "\x91": _push(lambda d: d.container(Set(d.pop_to_mark(), is_frozen=True))),
            "t": _push(lambda d: d.container(tuple(d.pop_to_mark()))),
            "l": _push(lambda d: d.container(d.pop_to_mark())),
            "d": _dict,
            "\x85": _tuple_of(1),
            "\x86": _tuple_of(2),
            "\x87": _tuple_of(3),
            "a": _append,
            "e": lambda d: d.extend(d.pop_to_mark()),
            "\x90": lambda d: d.extend(d.pop_to_mark()),
            "s": _set_item,
            "u": lambda d: d.set_items(d.pop_to_mark()),
            "c": lambda d: d.add_global(d.line(), d.line()),
            "\x93": _stack_global,
            "\x81": lambda d: d.add_object(is_new=True),
            "R": lambda d: d.add_object(is_new=False),
            "b": Decoder.build,
            "Q": _push(lambda d: d.persistent(d.pop())),
        }.items()
    }
)
