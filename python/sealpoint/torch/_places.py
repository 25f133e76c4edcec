# SPDX-License-Identifier: Apache-2.0
"""Places of a state that are filled otherwise than by ``container[key] = value``."""

from __future__ import annotations

from typing import Any

from sealpoint import _tree


class Root:
    """Puts elements into a list that is the state itself."""

    def __init__(self, state: list[Any]) -> None:
        self._state = state

    def __setitem__(self, _: Any, elements: list[Any]) -> None:
        self._state[:] = elements


class Later:
    """Puts a tuple where a list was filled."""

    def __init__(self, container: Any, key: Any) -> None:
        self._container, self._key = container, key

    def __setitem__(self, _: Any, filled: list[Any]) -> None:
        self._container[self._key] = tuple(filled)


class Unwrap:
    """Puts this rank's value, once it is there, where ``per_rank`` was."""

    def __init__(self, container: Any, key: Any, holder: list[Any], is_wrapped: bool) -> None:
        self._container, self._key, self._holder, self._is_wrapped = container, key, holder, is_wrapped

    def __setitem__(self, _: Any, __: Any) -> None:
        value = self._holder[0]
        self._container[self._key] = _tree.PerRank(value) if self._is_wrapped else value
