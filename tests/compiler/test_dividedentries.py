"""Entries in small mappings: the same as an `OrderedDict`, and no larger."""

from __future__ import annotations

import random
import sys
from collections import OrderedDict

import pytest

from headrace.compiler import dividedentries
from headrace.compiler.dividedentries import KEYS_OF_A_PART, DividedEntries, DividedEntry

MANY = 10**18


def divided(gone: list[str], *keys: str) -> DividedEntries[DividedEntry]:
    entries = DividedEntries[DividedEntry](100_000, lambda key, _: gone.append(key))
    for key in keys:
        entries[key] = made()
    return entries


def made(number: int = 0) -> DividedEntry:
    return DividedEntry({"n": number}, 0.0)


def test_it_does_what_an_ordered_dict_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dividedentries, "KEYS_OF_A_PART", 5)
    gone: list[str] = []
    entries, model = divided(gone), OrderedDict[str, DividedEntry]()
    chance = random.Random(0)
    for number in range(3_000):
        key, turn = f"{chance.randrange(40)}", chance.random()
        if turn < 0.2 and model:
            is_last = chance.random() < 0.2
            assert entries.popitem(is_last) == model.popitem(is_last)
        elif turn < 0.25:
            more = {f"more {number} {each}": made(number) for each in range(chance.randrange(9))}
            model.update(more)
            entries.take_in(more)
        elif key in model:
            entries.move_to_end(key)
            model.move_to_end(key)
        else:
            entries[key] = model[key] = made(number)
        assert [*entries.items()] == [*model.items()]
        assert [*entries.values()] == [*model.values()]
        assert [*entries] == [*model]
        assert [*reversed(entries)] == [*reversed(model)]
        assert len(entries) == len(model)
        assert entries.get(key) is model.get(key)
        assert (key in entries) == (key in model)
        assert all(entries[each] is model[each] for each in model)
    assert len(gone) > 300


def test_what_is_written_meanwhile_is_not_among_what_was_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dividedentries, "KEYS_OF_A_PART", 2)
    entries = divided([], *"abcdefg")
    unwritten = entries.unwritten()
    found = next(unwritten)
    entries.move_to_end("d")
    entries["new"] = made()
    entries.popitem(last=False)
    assert (found, [*unwritten]) == (["a", "b"], [["c"], ["e", "f"], ["g"]])


def test_a_few_keys_that_stay_of_many_parts_do_not_keep_the_room_of_all() -> None:
    entries = divided([])
    for number in range(100 * KEYS_OF_A_PART):
        key = f"hot {number % 20}" if number % 100 else f"cold {number}"
        if key in entries:
            entries.move_to_end(key)
        else:
            entries[key] = made()

    room = sum(map(sys.getsizeof, entries._parts.values()))

    assert room < 400 * len(entries)


def test_any_number_of_keys_can_be_asked_for() -> None:
    entries = DividedEntries[DividedEntry](MANY, lambda *_: None)
    entries["a"] = made()
    assert [*entries] == ["a"]
