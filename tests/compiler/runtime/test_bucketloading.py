"""Durable buckets that are read many keys at a time: what is unusual comes back as it was all the same."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler import durablebucket
from headrace.compiler.durablebucket import KeptEntry
from headrace.compiler.jsontext import decode_exact, encode
from headrace.compiler.runtime import bucketloading, keptbuckets
from headrace.compiler.runtime.bucketloading import LoadedKeys, in_order
from headrace.compiler.store import buckettables
from tests.compiler.remembering import clock_at, contents, declared, opened, stored
from tests.virtual import virtual

USUAL = {f"m{number:02}": {"n": number} for number in range(25)}
ODD: list[tuple[str, Any]] = [
    ("m03\n", {"n": "a line feed in the key"}),
    ("m03\0", {"n": "a NUL"}),
    ("m03\ud800", {"n": "half a character"}),
    ("m03ü", {"n": "ü\n"}),
    ("m03a", {"digits": decode_exact(b"[1.10,0.1234567890123456789,1e2,12345678901234567890]")}),
    ("m03b", {"deep": decode_exact(b"[" * 20 + b"]" * 20)}),
    ("m03c", {"{": "}", "a b": '{"c":1.10}'}),
    ("m03d", {"large": "x" * bucketloading.PAGE_BYTES}),
    ("m03e", {}),
]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a few keys be a page."""
    monkeypatch.setattr(keptbuckets, "FIRST_KEYS", 3)
    monkeypatch.setattr(bucketloading, "MOST_KEYS", 6)


@pytest.fixture(params=["in one mapping", "in small ones"])
def mapping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have entries be in one mapping, or in several."""
    if request.param == "in small ones":
        monkeypatch.setattr(durablebucket, "DIVIDED_FROM", 0)


def texts(found: list[tuple[str, Any]]) -> list[tuple[str, bytes]]:
    return [(key, encode(values)) for key, values in found]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.usefixtures("mapping")
@virtual
async def test_what_is_unusual_among_what_is_usual_comes_back_as_it_was(
    tmp_path: Path, odd: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    joined = buckettables.joined

    def noted(*given: Any) -> Any:
        found = joined(*given)
        asked.append(found is not None)
        return found

    store = await opened(tmp_path)
    bucket = await declared(store)
    written = [*USUAL.items()]
    written.insert(10, odd)
    random.Random(0).shuffle(written)
    for key, values in written:
        bucket.merge({key: values})
    await store.close()
    monkeypatch.setattr(buckettables, "joined", noted)
    store = await opened(tmp_path)

    again = await declared(store)

    assert texts(contents(again)) == texts(written)
    assert again.fill() == bucket.fill()
    assert any(asked)
    await store.close()


@pytest.mark.usefixtures("mapping")
@virtual
async def test_one_that_is_damaged_costs_itself(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    bucket = await declared(store)
    bucket.merge(USUAL)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE remembered SET value = replace(value, '4', '5') WHERE key = 'm04'")
    store = await opened(tmp_path)

    found = dict(contents(await declared(store)))

    assert found == {key: values for key, values in USUAL.items() if key != "m04"}
    assert store.condition.damaged == 1
    await store.close()


@pytest.mark.usefixtures("mapping")
@virtual
async def test_what_is_crowded_out_of_many_goes_on_the_disk_as_well(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    bucket = await declared(store)
    for key, values in USUAL.items():
        bucket.merge({key: values})
    await store.close()
    for _ in range(2):
        store = await opened(tmp_path)
        bucket = await declared(store, max_keys=7)
        assert contents(bucket) == [*USUAL.items()][-7:]
        await stored(bucket)
        await store.close()


@pytest.mark.parametrize("is_shuffled", [False, True])
@virtual
async def test_keys_are_put_in_the_order_of_their_numbers(is_shuffled: bool) -> None:
    numbers = [*range(20_000)]
    if is_shuffled:
        random.Random(0).shuffle(numbers)
    now = clock_at().monotonic()
    pages = [
        LoadedKeys(
            tuple(some), tuple(map(str, some)), tuple(KeptEntry({"n": each}, now) for each in some)
        )
        for some in (numbers[start : start + 700] for start in range(0, 20_000, 700))
    ]

    found = [*in_order(pages)]

    assert [number for each in found for number in each.numbers] == sorted(numbers)
    assert [key for each in found for key in each.keys] == [*map(str, sorted(numbers))]
    assert [entry.values["n"] for each in found for entry in each.entries] == sorted(numbers)
