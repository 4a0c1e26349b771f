"""The beginning of a message as JSON: what is shown of it, whatever it goes on with.

A message may be as long as a post. What is not shown is not encoded: the message is cut before, far enough
behind what is shown that nobody sees where.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from headrace.compiler.decimals import Written
from headrace.compiler.delivery import JsonValue
from headrace.compiler.jsontext import encode

MOST_VALUES = 16_384
MOST_CHARACTERS = 512 * 1024
"""Of messages that are encoded whole: that takes two milliseconds at most."""


def beginning(message: JsonValue, most: int) -> bytes:
    """Return a message as JSON; of one that has more than ``most`` bytes, the first of them, and more.

    It takes a microsecond a value, so a millisecond for 2 KiB of the smallest.

    Raises:
        ValueError, TypeError, RecursionError: as `encode` does, unless that is about what is left out.
    """
    return encode(_Cut(most).value(message))


def are_small(messages: list[JsonValue]) -> bool:
    """Return whether it takes no time to encode these values whole. Looked at level by level, in C."""
    values, characters = 0, 0
    level: list[Any] = messages
    while level:
        values += len(level)
        if values > MOST_VALUES:
            return False
        # What the strings and numbers have at least that may have many.
        texts = [each for each in level if type(each) is str]
        digits = [len(each.text) for each in level if type(each) is Written]
        bits = [each.bit_length() for each in level if type(each) is int]
        characters += sum(map(len, texts)) + sum(digits) + sum(bits) // 4
        objects = [each for each in level if type(each) is dict]
        lists = [each for each in level if type(each) is list]
        if values + sum(map(len, objects)) + sum(map(len, lists)) > MOST_VALUES:
            return False
        characters += sum(map(len, chain.from_iterable(objects)))
        if characters > MOST_CHARACTERS:
            return False
        inner: Iterable[Any] = chain.from_iterable(each.values() for each in objects)
        level = [*inner, *chain.from_iterable(lists)]
    return True


class _Cut:
    """Makes a value of the beginning of another. Counts bytes of its JSON: never more than there are."""

    __slots__ = ("_left", "_most")

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def value(self, value: JsonValue) -> JsonValue:
        """Return a value, or one whose JSON begins in the same way."""
        match value:
            case str():
                self._left -= len(value) + 2
                return value[: self._most]
            case list():
                return self._list(value)
            case dict():
                return self._object(value)
            case Written():
                self._left -= len(value.text)
            case int():
                self._left -= value.bit_length() // 4 or 1
            case _:
                self._left -= 1
        return value

    def _list(self, items: list[JsonValue]) -> list[JsonValue]:
        self._left -= 1
        made = []
        for each in items:
            if self._left < 0:
                break
            made.append(self.value(each))
            self._left -= 1
        return made

    def _object(self, pairs: dict[str, JsonValue]) -> dict[str, JsonValue]:
        self._left -= 1
        made: dict[str, JsonValue] = {}
        for key, each in pairs.items():
            if self._left < 0:
                break
            if type(key) is str:
                self._left -= len(key) + 3
                if len(key) > self._most:
                    made[key[: self._most]] = None
                    break
            made[key] = self.value(each)
            self._left -= 1
        return made
