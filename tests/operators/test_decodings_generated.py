"""Whatever transforms do, they do alike to plain doubles and to numbers that remember their digits."""

import asyncio
from copy import deepcopy
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex.subject import Subject

from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.states import PipelineState
from headrace.compiler.decimals import Written
from headrace.compiler.delivery import Delivery, Window
from headrace.compiler.jsontext import Decoding, encode
from headrace.compiler.lowering.chain import lower, plainly
from headrace.operators.buffer import Buffer
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from headrace.operators.recall import Recall
from headrace.operators.reducer import Reducer
from headrace.operators.remember import Remember
from headrace.operators.script import Script
from headrace.operators.splitter import Splitter
from tests.compiler.lowering.drawn import (
    arrivals,
    filters,
    paths,
    recalls,
    reducers,
    remembers,
    some_maps,
    weighted,
)
from tests.compiler.lowering.played import Stage, content, playing
from tests.examples import examples
from tests.operators.scripted import outcome

PLAIN, EXACT = Decoding(), Decoding()
EXACT.keep_digits(keeps=True)


def spelt(value, random):
    """Return JSON that stands for a value, with its doubles written in one way or another."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{text(k)}:{spelt(v, random)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(spelt(each, random) for each in value) + "]"
    if not isinstance(value, float):
        return text(value)
    shortest, whole = repr(value), f"{Decimal(value):f}"
    padded = shortest + "0" * random.randint(1, 30) if "e" not in shortest else shortest
    point = "" if "." in whole else ".0"
    return random.choice([shortest, padded, whole + point, f"{Decimal(value):E}"])


def text(value):
    return encode(value).decode()


class Unpaused(Script):
    """A script that is never paused, so that what it does does not wait for a busy machine."""

    def operator(self, ctx):
        ctx.lift_pausing = lambda step: ctx.lift(lambda batch: step(batch, 60.0))
        return super().operator(ctx)


def script(code, **options):
    return Unpaused.load({"source": {"type": "inline", "code": code}, **options})


SCRIPTS = [
    "emit(msg)",
    "msg.c = msg.a; emit(msg)",
    "msg.a += 1.0; emit(msg); msg.d.a = msg.a; emit(msg)",
    "emit(#{a: msg.d, b: type_of(msg.a), c: `${msg.a}`, d: [msg.a, msg.a == 1.0, -msg.a]})",
    "if msg.a > 0.5 { emit([msg.a, msg]) }",
    'remember(msg.b, #{c: msg.a}); emit(#{a: recall(msg.b).c, b: "x", d: field(msg, "d.a")})',
    "let all = [msg.a, msg.c]; all.sort(); emit(#{a: all, b: msg.b})",
]
scripts = st.sampled_from([script(each) for each in SCRIPTS])
holding = st.builds(lambda size: Buffer(size=size), st.integers(1, 4))
cutting = st.builds(lambda size: Splitter(out_size=size), st.integers(1, 2))
transforms = st.lists(
    weighted(
        some_maps, some_maps, filters, reducers(), remembers, recalls, scripts, holding | cutting
    ),
    min_size=1,
    max_size=4,
)
spellings = st.randoms(use_true_random=False)


def run(chain, bodies, lowering, decoding, key="b"):
    """Return all that can be told of a chain that is handed some bodies, in order."""
    log = []

    async def main():
        clock = Clock(asyncio.get_running_loop())
        bucket = Bucket("machines", Bounds(), clock)
        bucket.merge({"x": {"a": decoding.decode(b"1.50"), "c": decoding.decode(b"8e1")}})
        place = {
            "clock": clock,
            "state": PipelineState(bucket="machines", key=key),
            "buckets": {"machines": bucket},
            "decoding": decoding,
        }
        batches = [decoding.decode(body) for body in bodies]
        untouched = deepcopy(batches)
        for _ in playing(chain, batches, lowering, log, **place):
            await clock.sleep(0.5)
            log.append(("holds", content(bucket)))
            await clock.sleep(0.5)
        assert encode(batches) == encode(untouched)

    run_virtual(main)
    return log


def as_doubles(told):
    """Return what was told, as if no number remembered how it was written."""
    if isinstance(told, list | tuple):
        return [as_doubles(each) for each in told]
    return float if told is Written else told


@examples(400)
@given(transforms, arrivals, spellings, weighted(st.just("b"), st.none(), paths))
def test_every_chain_does_the_same_over_both_decodings(chain, batches, random, key):
    bodies = [spelt(batch, random).encode() for batch in batches]

    plain, exact = (run(chain, bodies, lower, decoding, key) for decoding in (PLAIN, EXACT))
    unfused = run(chain, bodies, plainly, EXACT, key)

    assert as_doubles(exact) == as_doubles(plain)
    assert exact == unfused


# --- what is handed on as it was written


def handed_on(chain, body, lowering=lower):
    """Return the JSON of the batches that come of a batch whose digits are kept."""
    seen = []

    async def main():
        clock = Clock(asyncio.get_running_loop())
        place = {
            "clock": clock,
            "state": PipelineState(bucket="machines", key="k"),
            "buckets": {"machines": Bucket("machines", Bounds(), clock)},
            "decoding": EXACT,
        }
        stages = [(each, Stage(index, [], **place)) for index, each in enumerate(chain)]
        source, window = Subject(), Window()
        source.pipe(*lowering(stages, [])).subscribe(
            lambda delivery: seen.append(encode(delivery.batch).decode())
        )
        window.take()
        source.on_next(Delivery(EXACT.decode(body.encode()), window))
        source.on_completed()

    run_virtual(main)
    return seen


def a_map(*mappings, **options):
    return Map.load({"mappings": [*mappings], **options})


KEEPING = {
    "filter": Filter.load({"Numeric": {"field": "a", "operator": "less_than", "value": 2}}),
    "copy": a_map({"type": "copy", "from": "a", "as": "a"}),
    "coalesce": a_map({"type": "coalesce", "from": ["z", "a"], "as": "a"}),
    "cast to float": a_map({"type": "cast", "from": "a", "to": "float"}),
    "mapped only": a_map(
        *({"type": "copy", "from": name, "as": name} for name in "kab"), keep="mapped"
    ),
    "reducer": Reducer.load(
        {"aggregations": [{"function": "last", "field": "b", "as": "b"}], "group_by": ["k", "a"]}
    ),
    "splitter": Splitter(out_size=1),
    "buffer": Buffer(size=1),
    "script": script("emit(msg)"),
    "script that reads it": script("if msg.a > 1.0 { emit(msg) }"),
    "script that moves it": script("let a = msg.a; msg.a = 0; msg.a = a; emit(msg)"),
    "script that makes another": script("emit(#{k: msg.k, a: msg.a, b: msg.b})"),
    "script over batches": script("emit(batch.map(|m| m))", scope="batch"),
}


@pytest.mark.parametrize("lowering", [lower, plainly])
@pytest.mark.parametrize("kind", KEEPING)
def test_what_is_only_handed_on_stays_as_it_was_written(kind, lowering):
    body = '[{"k":"x","a":1.10,"b":[1e3,2.50]}]'

    assert handed_on([KEEPING[kind]], body, lowering) == [body]


@pytest.mark.parametrize("lowering", [lower, plainly])
def test_what_is_remembered_is_recalled_as_it_was_written(lowering):
    chain = [
        Remember.load({"remember": [{"field": "a", "as": "b"}]}),
        Recall.load({"recall": ["b"]}),
    ]

    assert handed_on(chain, '[{"k":1.0,"a":1.10}]', lowering) == ['[{"k":1.0,"a":1.10,"b":1.10}]']


@pytest.mark.parametrize("lowering", [lower, plainly])
def test_a_key_is_the_same_however_it_is_written(lowering):
    chain = [Recall.load({"recall": ["b"]})]
    before = [Remember.load({"remember": [{"field": "a", "as": "b"}], "when": [IS_ONE]}), *chain]
    body = '[{"k":1.50,"a":1},{"k":1.5,"a":2},{"k":15e-1,"a":3}]'

    assert handed_on(before, body, lowering) == [
        '[{"k":1.50,"a":1,"b":1},{"k":1.5,"a":2,"b":1},{"k":15e-1,"a":3,"b":1}]'
    ]


IS_ONE = {"type": "numeric", "field": "a", "operator": "equal_to", "value": 1}


@pytest.mark.parametrize("lowering", [lower, plainly])
@pytest.mark.parametrize(
    ("function", "result"),
    [
        ("sum", "4.7"),
        ("avg", "1.175"),
        ("min", "1.10"),
        ("max", "1.40"),
        ("count", "4"),
        ("count_distinct", "2"),
        ("first", "1.10"),
        ("last", "1.40"),
        ("collect", "[1.10,1.1,11e-1,1.40]"),
        ("median", "1.1"),
        ("stddev", "0.12990381056766573"),
    ],
)
def test_values_are_gathered_by_their_double_and_handed_on_as_they_were_written(
    function, result, lowering
):
    each = Reducer.load({"aggregations": [{"function": function, "field": "a", "as": "r"}]})

    assert handed_on([each], '[{"a":1.10},{"a":1.1},{"a":11e-1},{"a":1.40}]', lowering) == [
        f'[{{"r":{result}}}]'
    ]


@pytest.mark.parametrize("lowering", [lower, plainly])
def test_numbers_that_are_one_double_are_one_group(lowering):
    grouped = Reducer.load(
        {"aggregations": [{"function": "count", "as": "n"}], "group_by": ["a", "b"]}
    )
    body = '[{"a":1.10,"b":{"c":[2.50]}},{"a":1.1,"b":{"c":[2.5]}},{"a":1.2,"b":0}]'

    assert handed_on([grouped], body, lowering) == [
        '[{"a":1.10,"b":{"c":[2.50]},"n":2},{"a":1.2,"b":0,"n":1}]'
    ]


@pytest.mark.parametrize("lowering", [lower, plainly])
@pytest.mark.parametrize(
    ("mapping", "result"),
    [
        ({"type": "cast", "from": "a", "to": "text"}, '"1.1"'),
        ({"type": "concat", "parts": [{"type": "field", "field": "a"}], "as": "a"}, '"1.1"'),
        ({"type": "cast", "from": "s", "to": "json", "as": "a"}, '{"t":[2.50]}'),
        ({"type": "cast", "from": "n", "to": "float", "as": "a"}, "2.5"),
        ({"type": "cast", "from": "w", "to": "integer", "as": "a"}, "2"),
        (
            {"type": "cast", "from": "w", "to": "timestamp", "as": "a"},
            '"1970-01-01T00:00:02+00:00"',
        ),
        (
            {
                "type": "arithmetic",
                "left": {"type": "field", "field": "a"},
                "operator": "add",
                "right": {"type": "value", "value": 0},
                "as": "a",
            },
            "1.1",
        ),
    ],
)
def test_what_a_map_makes_of_a_number_it_makes_of_the_double(mapping, result, lowering):
    others = '"s":"{\\"t\\":[2.50]}","n":"2.50","w":2.00'

    assert handed_on([a_map(mapping)], f'[{{"a":1.10,{others}}}]', lowering) == [
        f'[{{"a":{result},{others}}}]'
    ]


@pytest.mark.parametrize("call", ["recall(msg.a)", "field(msg, msg.a)", "remember(msg.a, #{})"])
def test_a_script_that_gives_one_to_a_function_hears_the_same_of_it(call):
    plain, exact = (outcome(call, [{"id": "x", "a": a}]).failure for a in (1.1, Written("1.10")))

    assert exact == plain
    assert "not a float" in exact
