"""The most that a mapping takes is done within a turn of the loop, whatever the text is made of."""

import asyncio

import pytest

from headrace.compiler.largejson import LargeList
from headrace.operators.map import Map
from tests.compiler.lowering.sliced import longest_turn
from tests.operators.mappings import a_map, cast, concat, template
from tests.slowness import shortest, slowness

pytestmark = pytest.mark.timed


def of_x(type, **options):
    return {"type": type, "from": "x", **options}


def replacing(text, with_):
    return of_x("replace", text=text, **{"with": with_})


LONG_INTEGER = 10**4_299
CHANGED = 256 * 1024
READ = 1024 * 1024


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (of_x("text", apply=["lower"]), {"x": "Σ" * CHANGED}),
        (of_x("text", apply=["lower"]), {"x": "İ" * CHANGED}),
        (of_x("text", apply=["upper"]), {"x": "ß" * CHANGED}),
        (of_x("text", apply=["trim"]), {"x": " " * CHANGED}),
        (of_x("mask", keep_from="b" + "a" * 19), {"x": "a" * CHANGED}),
        (of_x("mask", keep_from="a" * 19 + "b"), {"x": "a" * CHANGED}),
        (of_x("split", by="ab" * 9 + "bb"), {"x": "ab" * (READ // 2)}),
        (of_x("split", by="a" * 19 + "b"), {"x": "a" * READ}),
        (of_x("split", by=",", max=10_000), {"x": " x ," * 9_999}),
        (of_x("join", max=10_000, **{"with": ","}), {"x": [0.1 + n for n in range(10_000)]}),
        (of_x("hash", algorithm="sha512"), {"x": "\U00010400" * READ}),
        (of_x("hash", algorithm="hmac_sha256", key="k" * 16), {"x": "\U00010400" * READ}),
        (replacing("a", "bb"), {"x": "a" * READ}),
        (replacing("ab", "b"), {"x": "ab" * (READ // 2)}),
        (replacing("a" * 19 + "b", "b"), {"x": "a" * READ}),
        (replacing("a" * 500 + "b" + "a" * 500, "b"), {"x": "a" * READ}),
        (replacing("a", "b"), {"x": "a" * (16 * READ)}),
        (of_x("join", max=10_000, **{"with": ","}), {"x": [10**99] * 10_000}),
        (of_x("join", max=10_000, **{"with": ","}), {"x": [LONG_INTEGER] * 3_900}),
        (template("{x}", escape="url"), {"x": "é" * 65_536}),
        (template("{x}", escape="json"), {"x": "\x01" * CHANGED}),
        (of_x("number", apply=["round", "ceil"], digits=15), {"x": 1.7e308}),
        ({"type": "drop_nulls", "nested": True}, {"x": [{"y": None}] * 4_900}),
        ({"type": "drop_nulls", "nested": True}, {"x": [[[]]] * 3_500}),
        ({"type": "drop_nulls"}, dict.fromkeys(map(str, range(25_000)), 1)),
        ({"type": "rename", "fields": {"1": "x"}}, dict.fromkeys(map(str, range(10_000)), 1)),
        (
            {"type": "rename", "fields": {str(n): f"x.{n}" for n in range(50)}},
            dict.fromkeys(map(str, range(10_000)), 1),
        ),
        (
            {"type": "rename", "fields": {f"x.{n}": f"y{n}" for n in range(50)}},
            dict.fromkeys(map(str, range(9_000)), 1) | {"x": {str(n): n for n in range(10_000)}},
        ),
        (
            {"type": "rename", "fields": {f"x{n}.a": f"y{n}" for n in range(50)}},
            {f"x{n}": dict.fromkeys(("a", *map(str, range(9_000))), 1) for n in range(50)},
        ),
    ],
)
def test_it_is_done_within_20_milliseconds(mapping, message):
    made = Map.load(a_map(mapping))

    def seconds():
        return asyncio.run(longest_turn(made, [message], is_empty=True))

    assert shortest(seconds, 0.02, times=5) < 0.02 * slowness()


@pytest.mark.parametrize("on_error", ["skip", "fail"])
@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (of_x("hash", algorithm="sha512"), {"x": "\U00010400" * READ}),
        (of_x("text", apply=["upper"]), {"x": "ß" * CHANGED}),
        (of_x("mask", keep_from="b" + "a" * 19), {"x": "a" * CHANGED}),
        (of_x("split", by="a" * 19 + "b"), {"x": "a" * READ}),
    ],
)
def test_several_of_them_are_not_one_turn_before_one_that_fails(mapping, message, on_error):
    four = [mapping | {"as": f"made{n}"} for n in range(4)]
    made = Map.load(a_map(*four, of_x("cast", to="integer"), on_error=on_error))

    def seconds():
        return asyncio.run(longest_turn(made, [message]))

    assert shortest(seconds, 0.02, times=5) < 0.02 * slowness()


FULL = {
    "text": (of_x("text", apply=["upper"]), {"x": "ß" * CHANGED}, 31),
    "text in lower case": (of_x("text", apply=["lower"]), {"x": "İ" * CHANGED}, 16),
    "mask": (of_x("mask", keep_from="a" * 19 + "b"), {"x": "a" * CHANGED}, 63),
    "mask of integers": (of_x("mask", keep_end=4), {"x": LONG_INTEGER}, 400),
    "split": (of_x("split", by="a" * 19 + "b"), {"x": "a" * READ}, 15),
    "split into many": (of_x("split", by=",", max=10_000), {"x": " x ," * 9_999}, 100),
    "split into some": (of_x("split", by=","), {"x": " x ," * 999}, 1_000),
    "join": (of_x("join", max=10_000, **{"with": ","}), {"x": [0.5] * 10_000}, 60),
    "join of some": (of_x("join", **{"with": ","}), {"x": [0.5] * 1_000}, 600),
    "join with much": (of_x("join", **{"with": "y" * 16_000}), {"x": [""] * 1_000}, 10),
    "hash": (of_x("hash", algorithm="sha512"), {"x": "\U00010400" * READ}, 4),
    "hash with a key": (
        of_x("hash", algorithm="hmac_sha256", key="k" * 16),
        {"x": "\U00010400" * READ},
        8,
    ),
    "hash of integers": (of_x("hash", algorithm="sha256"), {"x": LONG_INTEGER}, 400),
    "number": (of_x("number", apply=["round", "ceil"], digits=15), {"x": 1.7e308}, 2_048),
    "replace": (replacing("a", "bb"), {"x": "a" * READ}, 4),
    "replace with less": (replacing("ab", "b"), {"x": "ab" * (READ // 2)}, 8),
    "replace nothing": (replacing("a" * 19 + "b", "b"), {"x": "a" * READ}, 15),
    "replace with much": (replacing("a", "b" * 100_000), {"x": "a" * 100}, 20),
    "drop_nulls": ({"type": "drop_nulls"}, dict.fromkeys(map(str, range(24_000)), 1), 20),
    "drop_nulls nested": (
        {"type": "drop_nulls", "nested": True},
        {"x": [{"y": None}] * 4_900},
        30,
    ),
    "drop_nulls of too many": (
        {"type": "drop_nulls", "nested": True},
        {"x": [{"y": None}] * 19_000},
        30,
    ),
    "rename": (
        {"type": "rename", "fields": {"1": "x"}},
        dict.fromkeys(map(str, range(10_000)), 1),
        60,
    ),
    "rename into objects": (
        {"type": "rename", "fields": {str(n): f"x.{n}" for n in range(50)}},
        dict.fromkeys(map(str, range(10_000)), 1),
        30,
    ),
    "rename from objects": (
        {"type": "rename", "fields": {f"x.{n}": f"y{n}" for n in range(50)}},
        {"x": dict.fromkeys(map(str, range(10_000)), 1)},
        600,
    ),
    "template for a url": (template("{x}", escape="url"), {"x": "é" * 65_536}, 30),
    "template for JSON": (template("{x}", escape="json"), {"x": "\x01" * CHANGED}, 16),
    "template of integers": (template("{x}"), {"x": LONG_INTEGER}, 400),
    "template of many": (template("{x}" * 100), {"x": "a" * 40_000}, 60),
    "concat of integers": (concat(["x"], "/"), {"x": LONG_INTEGER}, 400),
    "concat of many": (concat(*[["x"]] * 100), {"x": "a" * 40_000}, 20),
    "concat": (concat(["x"], "/", ["x"]), {"x": "a" * READ}, 15),
    "cast to text": (cast("x", "text"), {"x": LONG_INTEGER}, 400),
    "cast to integer": (cast("x", "integer"), {"x": "7" * 4_300}, 1_000),
    "cast to float": (cast("x", "float"), {"x": "1" * READ}, 16),
    "cast to json": (cast("x", "json"), {"x": f"[{'1,' * 50_000}1]"}, 80),
}


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("case", FULL)
def test_no_turn_is_long_in_a_batch_as_long_as_a_post(case, is_large, on_error):
    mapping, message, messages = FULL[case]
    made = Map.load(a_map(mapping, on_error=on_error))

    def seconds():
        batch = [{**message} for _ in range(messages)]
        if is_large:
            large = LargeList()
            large.extend(batch)
            batch = large
        return asyncio.run(longest_turn(made, batch, is_empty=True))

    assert shortest(seconds, 0.02, times=3) < 0.02 * slowness()
