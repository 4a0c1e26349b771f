"""The most that a mapping takes is done within a turn of the loop, whatever the text is made of."""

from time import thread_time

import pytest

from headrace.compiler.lowering.chain import fuse
from headrace.operators.map import Map
from tests.doubles import StubContext
from tests.operators.mappings import a_map


def of_x(type, **options):
    return {"type": type, "from": "x", **options}


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
        (of_x("number", apply=["round", "ceil"], digits=15), {"x": 1.7e308}),
        ({"type": "drop_nulls", "nested": True}, {"x": [{"y": None}] * 19_000}),
        ({"type": "drop_nulls", "nested": True}, {"x": [[[]]] * 12_000}),
        ({"type": "drop_nulls"}, dict.fromkeys(map(str, range(100_000)), 1)),
        ({"type": "rename", "fields": {"1": "x"}}, dict.fromkeys(map(str, range(10_000)), 1)),
        (
            {"type": "rename", "fields": {str(n): f"x.{n}" for n in range(50)}},
            dict.fromkeys(map(str, range(10_000)), 1),
        ),
        (
            {"type": "rename", "fields": {f"x.{n}": f"y{n}" for n in range(50)}},
            dict.fromkeys(map(str, range(9_000)), 1) | {"x": {str(n): n for n in range(10_000)}},
        ),
    ],
)
def test_it_is_done_within_20_milliseconds(mapping, message):
    made = Map.load(a_map(mapping))
    ctx = StubContext()
    loop = fuse([lambda code: made.generate(code, ctx)], "p1 transforms[0]").loop

    def seconds():
        began = thread_time()
        loop([message])
        return thread_time() - began

    assert min(seconds() for _ in range(5)) < 0.02
