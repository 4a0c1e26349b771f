"""A fused chain does what the same chain does unfused: batches, failures, warnings, settled debts.

So do both where every batch is a large one, which is worked on in slices.
"""

import asyncio
from copy import deepcopy
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st
from marshmallow import ValidationError
from reactivex.subject import Subject

from headrace.compiler import delivery as delivery_module
from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.states import PipelineState
from headrace.compiler.delivery import Acknowledgement, Delivery, Window
from headrace.compiler.lowering.chain import lower, plainly
from headrace.compiler.lowering.lines import Pacing, SliceShare
from headrace.operators.aggregations import FUNCTIONS
from headrace.operators.casts import CASTS
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from headrace.operators.recall import Recall
from headrace.operators.reducer import Reducer
from headrace.operators.remember import Remember
from tests.compiler.lowering.chains import Hurrying
from tests.doubles import StubContext
from tests.examples import examples

# Few keys, so that paths meet: the same field, one below the other, a literal key with a dot.
PATHS = ["a", "b", "c", "d", "a.b", "a.c", "b.a", "d.a", "d.b", "d.a.c", "a."]
paths = st.sampled_from(["a", "b", "c", "d", "d.a"]) | st.sampled_from(PATHS)
strings = st.sampled_from(
    ["", "x", "a", " 12 ", "1.5", "TRUE", "2026-03-01", "null", "[1]", '{"b": 1}', "1e999"]
)
integers = st.sampled_from([0, 1, -3, 80, 2**53 + 1, 10**310])
doubles = st.sampled_from([0.0, -0.0, 1.0, 0.5, 1.8, -80.25, 1.7e308, 5e-324])
numbers = integers | doubles


def one_of_type(type, **options):
    """Return a config object tagged by `type`; an option that is drawn as None is left out."""
    return st.fixed_dictionaries({"type": st.just(type)} | options).map(
        lambda made: {key.rstrip("_"): value for key, value in made.items() if value is not None}
    )


def sometimes(strategy):
    return st.none() | strategy


def weighted(*strategies):
    """Return one that draws from each as often as it is named."""
    return st.sampled_from(strategies).flatmap(lambda drawn: drawn)


literals = st.one_of(
    one_of_type("text", value=strings),
    one_of_type("number", value=numbers),
    one_of_type("boolean", value=st.booleans()),
    one_of_type("null"),
)
operands = one_of_type("field", field=paths) | one_of_type("value", value=numbers)
parts = one_of_type("field", field=paths) | one_of_type("value", value=strings)
operators = st.sampled_from(["add", "subtract", "multiply", "divide"])
defaults = sometimes(literals)
mappings = st.one_of(
    one_of_type("copy", from_=paths, as_=sometimes(paths), default=defaults),
    one_of_type("constant", value=literals, as_=paths),
    one_of_type(
        "coalesce", from_=st.lists(paths, min_size=2, max_size=3), as_=paths, default=defaults
    ),
    one_of_type(
        "cast",
        from_=paths,
        to=st.sampled_from([*CASTS]),
        as_=sometimes(paths),
        default=defaults,
    ),
    one_of_type("concat", parts=st.lists(parts, min_size=1, max_size=3), as_=paths),
    one_of_type("arithmetic", left=operands, operator=operators, right=operands, as_=paths),
    one_of_type("drop", from_=st.lists(paths, min_size=1, max_size=2)),
)


@st.composite
def maps(draw):
    """Draw a map: as many of a list of mappings as go together."""
    policy = draw(
        st.fixed_dictionaries(
            {
                "keep": st.sampled_from(["all", "mapped"]),
                "on_missing": st.sampled_from(["error", "omit", "null"]),
            }
        )
    )
    made = Map(mappings=())
    for mapping in draw(st.lists(mappings, min_size=1, max_size=4)):
        document = {**policy, "mappings": [*(each.dump() for each in made.mappings), mapping]}
        try:
            made = Map.load(document)
        except ValidationError:
            continue
    return made


def condition(fields, value, *operators):
    return st.fixed_dictionaries(
        {
            "field": weighted(st.sampled_from(fields), st.sampled_from(fields), paths),
            "operator": st.sampled_from(operators),
            "value": value,
        }
    )


# Mostly such as let something through.
numeric = condition(
    ["a", "c"], weighted(st.just(-81), numbers), "greater_than", "less_than", "equal_to"
)
string = condition(["b"], weighted(st.just(""), strings), "contains", "equal_to")
filters = (numeric.map(lambda c: {"Numeric": c}) | string.map(lambda c: {"String": c})).map(
    Filter.load
)
some_maps = maps().filter(lambda made: made.mappings)
chains = st.lists(weighted(some_maps, some_maps, filters), min_size=1, max_size=4)


@st.composite
def reducers(draw):
    """Draw a reducer whose results have the names that everything else here looks for."""
    group_by = draw(st.lists(weighted(st.just("b"), paths), max_size=2, unique=True))
    free = [name for name in "acdb" if name not in group_by]
    functions = draw(st.lists(st.sampled_from([*FUNCTIONS]), min_size=1, max_size=len(free)))
    aggregations = [
        {"function": function, "field": draw(weighted(st.just("a"), paths)), "as": name}
        for function, name in zip(functions, free, strict=False)
    ]
    on_missing = draw(st.sampled_from(["error", "skip"]))
    return Reducer.load(
        {"aggregations": aggregations, "group_by": group_by, "on_missing": on_missing}
    )


COUNT = Reducer.load({"aggregations": [{"function": "count", "as": "a"}]})
gathering = st.tuples(chains, reducers() | st.just(COUNT), st.just([]) | chains).map(
    lambda parts: [*parts[0], parts[1], *parts[2]]
)

conditions = numeric.map(lambda c: {"type": "numeric", **c}) | string.map(
    lambda c: {"type": "string", **c}
)
names = st.lists(st.sampled_from(["a", "b", "c", "a.b", "d"]), min_size=1, max_size=3, unique=True)
remembers = st.builds(
    lambda names, fields, when: Remember.load(
        {
            "remember": [{"field": f, "as": n} for n, f in zip(names, fields, strict=False)],
            "when": when,
        }
    ),
    names,
    st.lists(weighted(st.sampled_from("abd"), paths), min_size=3, max_size=3),
    weighted(st.just([]), st.lists(conditions, max_size=2)),
)
recalls = st.builds(
    lambda names, policy: Recall.load({"recall": names, "on_missing": policy}),
    names,
    st.sampled_from(["skip", "null", "null", "error"]),
)
keeping = st.lists(weighted(remembers, recalls, some_maps, filters), min_size=1, max_size=5)

scalars = st.none() | st.booleans() | numbers | strings
values = scalars | st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "c", ""]), inner, max_size=2)
    ),
    max_leaves=4,
)
alike = st.fixed_dictionaries(
    {
        "a": weighted(numbers, numbers, numbers, st.booleans()),
        "b": strings,
        "d": st.fixed_dictionaries({"a": numbers | strings}),
    },
    optional={"c": numbers | values, "d.a": values},
)
other = st.dictionaries(st.sampled_from(PATHS), values, max_size=4) | values


def batches_of(messages):
    return st.lists(st.lists(messages, min_size=1, max_size=4), min_size=1, max_size=3)


arrivals = weighted(*map(batches_of, [alike, alike, alike, alike | other]))


class Stage(StubContext):
    """The place of one transform: writes what it says into a log it shares with the others."""

    def __init__(self, index, log, pacing=None, **state):
        super().__init__(place=f"transforms[{index}]", **state)
        self.index = index
        self.log = log
        if pacing is not None:
            self.pacing = pacing

    def warn_once(self, text):
        if not self.has_warned(text):
            self.log.append(("warned", self.index, text))
        super().warn_once(text)

    def report(self, cause):
        self.log.append(("failed", self.index, f"{type(cause).__name__}: {cause}"))


def run(transforms, batches, lowering):
    """Return everything that can be told of a run, in order."""
    log = []
    for _ in playing(transforms, batches, lowering, log):
        pass
    return log


def playing(transforms, batches, lowering, log, **state):
    """Run batches through a chain and log everything that can be told, in order; yield between them."""
    window, refusals = Window(), []
    stages = [(each, Stage(index, log, **state)) for index, each in enumerate(transforms)]
    source = Subject()

    def take(delivery):
        log.append(("handed on", exact(delivery.batch)))
        delivery.done()

    source.pipe(*lowering(stages, refusals)).subscribe(
        take, on_completed=lambda: log.append(("completed",))
    )
    for number, batch in enumerate(batches):
        window.take()
        settled = Acknowledgement(lambda number=number: log.append(("settled", number)))
        source.on_next(Delivery(batch, window, settled))
        yield
    source.on_completed()
    log += [("owed", window.used), ("refused", refusals)]


def run_in_slices(transforms, batches, lowering):
    """Return the same of a run in which every batch is large, and every message a part."""
    log = []

    async def main():
        clock = Clock(asyncio.get_running_loop())
        for _ in playing(transforms, batches, lowering, log, pacing=in_slices()):
            await clock.sleep(1)

    with patch.object(delivery_module, "PART", 1):
        run_virtual(main)
    return log


def in_slices():
    """Return the pacing for which every batch is large."""
    return Pacing(Hurrying(), SliceShare(), large=0)


def run_with_state(transforms, batches, lowering, key, bounds, remembered, pacing=lambda: None):
    """Return the same of a run with a bucket, and what is in the bucket after every batch.

    A second passes between batches.
    """
    log = []

    async def main():
        clock = Clock(asyncio.get_running_loop())
        bucket = Bucket("machines", bounds, clock)
        bucket.merge(deepcopy(remembered))
        bucket.watch("x", lambda: log.append(("told", content(bucket))))
        state = PipelineState(bucket="machines", key=key)
        about = {"state": state, "buckets": {"machines": bucket}, "pacing": pacing()}
        for _ in playing(transforms, batches, lowering, log, **about):
            await clock.sleep(0.5)
            log.append(("holds", content(bucket)))
            await clock.sleep(0.5)

    run_virtual(main)
    return log


def content(bucket):
    """Return what a bucket remembers, in its order, and when it was written."""
    cutoff = bucket.cutoff()
    return [
        (key, exact(entry.values), entry.at)
        for key, entry in bucket.entries.items()
        if entry.at > cutoff
    ]


def exact(value):
    """Return a value so that only the same is equal: 1, 1.0 and True differ, as do -0.0 and 0.0."""
    if isinstance(value, dict):
        return [(key, exact(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return [exact(inner) for inner in value]
    return type(value), value.hex() if isinstance(value, float) else value


HEAT = Filter.load({"Numeric": {"field": "a", "operator": "greater_than", "value": 80}})


def mapped(*mappings, **policy):
    return Map.load({"mappings": [*mappings], **policy})


COPY = {"type": "copy", "from": "a", "as": "b"}
BELOW = {"type": "copy", "from": "c", "as": "a.b"}
INTO = {"type": "copy", "from": "b", "as": "a"}


@examples(300)
@given(chains, arrivals)
# The second stage would warn of the first message, were it not for the first stage and the second.
@example([mapped(COPY), HEAT], [[{"a": "x"}, {}], [{"a": "x"}], [{"a": 81}, {"a": True}]])
# `a` is a scalar by now, but `a.b` goes where the literal key is.
@example([mapped(INTO, BELOW)], [[{"a.b": 1, "b": 5, "c": 2}]])
@example([mapped(INTO, BELOW, keep="mapped")], [[{"a.b": 1, "b": 5, "c": 2}]])
def test_a_fused_chain_does_what_the_unfused_one_does(transforms, batches):
    same_either_way(transforms, batches)


@examples(300)
@given(gathering, arrivals)
# Nothing is left for the reducer; what is left of the batch is less than came in.
@example([HEAT, COUNT], [[{"a": 1}, {"a": 2}]])
@example([HEAT, COUNT], [[{"a": 1}, {"a": 81}]])
def test_so_does_one_that_ends_in_what_gathers_messages(transforms, batches):
    same_either_way(transforms, batches)


def same_either_way(transforms, batches):
    untouched = deepcopy(batches)

    fused = run(transforms, batches, lower)
    plain = run(transforms, batches, plainly)

    assert fused == plain
    assert run_in_slices(transforms, batches, lower) == plain
    assert run_in_slices(transforms, batches, plainly) == plain
    assert exact(batches) == exact(untouched)


A_AS_C = Remember.load({"remember": [{"field": "a", "as": "c"}, {"field": "b", "as": "b"}]})
C = Recall.load({"recall": ["c", "b"], "on_missing": "skip"})


@examples(400)
@given(
    transforms=keeping,
    batches=arrivals,
    key=weighted(st.just("b"), st.just("b"), st.none(), paths),
    bounds=st.builds(Bounds, st.sampled_from([1, 2, 3, 10]), st.sampled_from([None, 1, 2])),
    remembered=st.dictionaries(
        weighted(strings, st.sampled_from(["1", "80", "true"])),
        st.dictionaries(st.sampled_from(["a", "c", "a.b"]), values, min_size=1),
        max_size=3,
    ),
)
# The last message with a key lacks a field that an earlier one has; a new key comes first.
@example(
    [A_AS_C], [[{"b": "y", "a": 1}, {"b": "x", "a": 1}, {"b": "x"}]], "b", Bounds(), {"x": {"a": 1}}
)
# One batch has more keys than the bucket, and the last one of them is incomplete.
@example(
    [A_AS_C],
    [[*({"b": key, "a": 1} for key in "uvxw"), {"b": "z"}]],
    "b",
    Bounds(3),
    {"p": {"a": 1}, "q": {"a": 1}, "x": {"a": 1}},
)
# Names come in the order of the config; keys in that of their last write.
@example([A_AS_C], [[{"b": "x"}, {"a": 1, "b": "x"}]], "b", Bounds(), {})
@example([A_AS_C], [[{"a": 1, "b": "x"}]], "b", Bounds(), {"x": {"a": 1}, "y": {"a": 1}})
# The second batch comes when what was remembered has expired.
@example([A_AS_C], [[{"b": key, "a": 1}] for key in "yx"], "b", Bounds(10, 1), {"x": {"a": 1}})
@example([C], [[{"b": "x"}]] * 2, "b", Bounds(10, 1), {"x": {"c": 0, "b": 0}})
# A later message fails the batch before anything is remembered; another one after it.
@example([mapped(COPY), A_AS_C], [[{"a": 1, "b": "x"}, {"b": "x"}]], "b", Bounds(), {})
@example([A_AS_C, mapped(COPY)], [[{"a": 1, "b": "x"}, {"b": "x"}]], "b", Bounds(), {})
# What is written in part, because a field is missing, is not recalled before it.
@example(
    [Recall.load({"recall": ["c"]}), A_AS_C],
    [[{"b": "x", "a": 1}, {"b": "y", "a": 1}], [{"b": "x", "a": 2}, {"b": "y"}]],
    "b",
    Bounds(),
    {"x": {"c": 0}, "y": {"c": 0}},
)
# What one remembers the next one recalls, but not the one before it.
@example([C, A_AS_C, C], [[{"a": 1, "b": "x"}]] * 2, "b", Bounds(), {"x": {"c": 0, "b": 0}})
# A message without a key is warned about once, and then no more.
@example([A_AS_C], [[{"a": 1, "b": None}], [{"a": 1}, {"a": 2, "b": "x"}]], "b", Bounds(), {})
def test_so_does_one_that_remembers_and_recalls_and_so_are_the_buckets(
    transforms, batches, key, bounds, remembered
):
    untouched = deepcopy(batches)

    fused = run_with_state(transforms, batches, lower, key, bounds, remembered)
    plain = run_with_state(transforms, batches, plainly, key, bounds, remembered)

    assert fused == plain
    with patch.object(delivery_module, "PART", 1):
        for lowering in (lower, plainly):
            about = (lowering, key, bounds, remembered, in_slices)
            assert run_with_state(transforms, batches, *about) == plain
    assert exact(batches) == exact(untouched)
