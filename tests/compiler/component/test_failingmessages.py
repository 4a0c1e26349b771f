"""`on_error: skip`: a batch goes on without the messages that fail, whichever form its chain has."""

import asyncio
import gc
import linecache
import weakref

import pytest
from marshmallow import ValidationError
from reactivex.subject import Subject

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed
from headrace.compiler.lowering.chain import lower, plainly
from headrace.compiler.schema.records import faults_of
from headrace.operators.buffer import Buffer
from headrace.operators.filter import Filter
from headrace.operators.httptransform import HttpTransform
from headrace.operators.map import Map
from headrace.operators.reducer import Reducer
from headrace.operators.remember import Remember
from headrace.operators.splitter import Splitter
from tests.doubles import StubContext, refusals
from tests.marbles import Broker
from tests.operators.mappings import a_map, arithmetic, cast, copy
from tests.promises import promise
from tests.virtual import virtual

DOUBLED = arithmetic("n", "multiply", 2, as_="n")
WHOLE = (
    "mapping 0 ('cast'): field 'n': cannot read a string as an integer: "
    "expected a whole number, or its digits in a string"
)
MISSING = "mapping 0 ('cast'): field 'n' is missing or null"
HEAT = Filter.load({"when": [{"type": "exists", "field": "t"}]})

either_way = pytest.mark.parametrize("lowering", [lower, plainly])


def skipping(*mappings, **options):
    return Map.load(a_map(*mappings, on_error="skip", **options))


class Line:
    """A chain of transforms, the deliveries that leave it, and who is told what."""

    def __init__(self, lowering, *transforms):
        self.broker = Broker()
        self.taken = []
        self.places = [StubContext(place=f"transforms[{at}]") for at in range(len(transforms))]
        for index, place in enumerate(self.places):
            place.index = index
        self.loops = []
        more = (
            {} if lowering is plainly else {"generated": lambda run, loop: self.loops.append(loop)}
        )
        self.operators = lowering([*zip(transforms, self.places, strict=True)], [], **more)
        self.source = Subject()
        self.source.pipe(*self.operators).subscribe(self.taken.append)

    def send(self, *batches):
        """Send batches through; return those that leave."""
        self.taken.clear()
        for batch in batches:
            self.source.on_next(self.broker.deliver(batch))
        return [each.batch for each in self.taken]

    async def lets_through(self, *batches):
        """Send batches through, also those that are worked on in slices; return those that leave."""
        self.send(*batches)
        await Clock(asyncio.get_running_loop()).sleep(1)
        return [each.batch for each in self.taken]

    @property
    def failures(self):
        return [place.failures for place in self.places]

    @property
    def lost(self):
        return [dict(place.lost) for place in self.places]


@either_way
def test_what_fails_is_left_out_and_the_others_go_on_in_their_order(lowering):
    line = Line(lowering, skipping(cast("n", "integer")))

    batches = line.send([{"n": "1"}, {"n": "x"}, {"n": 3}, {}, {"n": "y"}, {"n": "5"}])

    assert batches == [[{"n": 1}, {"n": 3}, {"n": 5}]]
    assert line.lost == [{WHOLE: 2, MISSING: 1}]


@either_way
def test_each_different_failure_of_a_batch_is_one_and_of_the_next_batch_another(lowering):
    line = Line(lowering, skipping(cast("n", "integer")))

    line.send([{"n": "x"}, {"n": "y"}, {}], [{"n": "z"}])

    assert line.failures == [[WHOLE, MISSING, WHOLE]]
    assert line.lost == [{WHOLE: 3, MISSING: 1}]


@promise("delivery.ack.left_out")
@either_way
def test_custody_of_what_is_left_out_closes_with_its_batch(lowering):
    line = Line(lowering, skipping(cast("n", "integer")))

    line.send([{"n": "x"}, {"n": 1}], [{"n": "x"}])

    # Of the second batch nothing goes on: it is settled at once.
    assert line.broker.acknowledged == [[{"n": "x"}]]
    for each in line.taken:
        each.done()
    assert line.broker.acknowledged == [[{"n": "x"}], [{"n": "x"}, {"n": 1}]]
    assert line.broker.window.used == 0


@either_way
@virtual
async def test_a_step_behind_it_whose_failures_cost_the_batch_still_does(lowering):
    demanding = Map.load(a_map(copy("t", "c")))
    line = Line(lowering, skipping(cast("n", "integer")), demanding)

    batches = await line.lets_through(
        [{"n": "x", "t": 1}, {"n": 1}, {"n": 2, "t": 3}], [{"n": 1, "t": 2}]
    )

    assert batches == [[{"n": 1, "t": 2, "c": 2}]]
    assert line.failures == [[WHOLE], ["mapping 0 ('copy'): field 't' is missing or null"]]
    assert line.lost == [{WHOLE: 1}, {}]


@either_way
@virtual
async def test_a_step_before_it_whose_failures_cost_the_batch_still_does(lowering):
    demanding = Map.load(a_map(copy("t", "c")))
    line = Line(lowering, demanding, skipping(cast("n", "integer")))

    assert await line.lets_through([{"n": "x", "t": 1}, {"n": 1}]) == []
    assert line.failures == [["mapping 0 ('copy'): field 't' is missing or null"], []]
    assert line.lost == [{}, {}]


@either_way
def test_two_that_skip_are_each_told_of_what_they_left_out(lowering):
    line = Line(lowering, skipping(cast("n", "integer")), HEAT, skipping(DOUBLED, copy("t", "c")))

    batches = line.send([{"n": 1, "t": {}}, {"n": "x", "t": 1}, {"n": 10**5000, "t": 1}, {"n": 1}])

    assert batches == [[{"n": 2, "t": {}, "c": {}}]]
    assert [sum(each.values()) for each in line.lost] == [1, 0, 1]


@either_way
def test_what_gathers_behind_it_gathers_the_others(lowering):
    counting = Reducer.load({"aggregations": [{"function": "sum", "field": "n", "as": "n"}]})
    line = Line(lowering, skipping(cast("n", "integer")), counting)

    assert line.send([{"n": 1}, {"n": "x"}, {"n": 4}]) == [[{"n": 5}]]
    assert line.lost == [{WHOLE: 1}, {}]


def test_a_run_ends_before_what_gathers_only_if_a_message_may_be_left_out():
    counting = Reducer.load({"aggregations": [{"function": "count", "as": "n"}]})
    failing = Map.load(a_map(cast("n", "integer")))

    assert len(Line(lower, failing, HEAT, counting).operators) == 1
    assert len(Line(lower, skipping(cast("n", "integer")), HEAT, counting).operators) == 2


def test_nothing_is_generated_differently_where_no_message_may_be_left_out():
    failing = Map.load(a_map(cast("n", "integer")))
    spelt = Map.load(a_map(cast("n", "integer"), on_error="fail"))

    assert source_of(failing) == source_of(spelt)
    assert "failed" not in source_of(failing)


def test_the_hopeful_source_is_the_same_and_each_message_of_the_careful_one_is_tried():
    failing, skip = source_of(Map.load(a_map(DOUBLED))), source_of(skipping(DOUBLED))

    hope, _, careful = failing.partition("    except (KeyError, TypeError):\n")
    assert skip.startswith(hope)
    assert "try:" not in careful
    assert skip.count("for m in batch:") == failing.count("for m in batch:")
    assert skip.count("try:") == failing.count("try:") + 1


def source_of(transform):
    line = Line(lower, transform)
    [loop] = line.loops
    return "".join(linecache.getlines(loop.__code__.co_filename))


@either_way
@virtual
async def test_a_warning_comes_where_the_plain_steps_give_it_and_not_of_a_batch_that_fails(
    lowering,
):
    demanding = Map.load(a_map(copy("t", "c")))
    line = Line(lowering, demanding, skipping(cast("n", "integer")))

    # The first batch fails before anybody looks at the message that is no object.
    await line.lets_through([5, {"n": 1}])
    assert [place.warnings for place in line.places][1] == []

    assert await line.lets_through([5, {"n": 1, "t": 1}]) == [[5, {"n": 1, "t": 1, "c": 1}]]
    assert len(line.places[1].warnings) == 1


@either_way
@virtual
async def test_nothing_of_what_failed_is_kept(lowering):
    class Kept(dict):
        """A message that can be watched."""

    line = Line(lowering, skipping(cast("n", "integer")))
    message = Kept(n="x")
    kept = weakref.ref(message)
    gc.disable()
    try:
        line.source.on_next(Broker().deliver([{"n": "y"}, message, {"n": 1}]))
        await Clock(asyncio.get_running_loop()).sleep(1)
        line.taken.clear()
        del message
        await Clock(asyncio.get_running_loop()).sleep(1)  # a large batch is let go of in slices
        assert kept() is None
    finally:
        gc.enable()


def test_a_message_that_a_plain_step_cannot_do_for_a_fault_of_ours_is_left_out_as_well():
    class Faulty(Map, kind="faulty"):
        """Divides by what it finds."""

        def for_each_batch(self, ctx):
            return lambda: lambda batch: [[{"n": 1 / each["n"]} for each in batch]]

    line = Line(plainly, Faulty.load(a_map(DOUBLED, on_error="skip")))

    assert line.send([{"n": 0}, {"n": 2}]) == [[{"n": 0.5}]]
    assert line.lost == [{"ZeroDivisionError: division by zero": 1}]


def test_a_step_on_its_own_still_raises():
    with pytest.raises(BatchFailed):
        skipping(cast("n", "integer")).step(StubContext())([{"n": "x"}])


@pytest.mark.parametrize(("word", "meant"), [("drop", "skip"), ("abort", "fail"), ("skp", "skip")])
def test_a_word_from_elsewhere_is_answered_with_ours(word, meant):
    with pytest.raises(ValidationError) as refused:
        Map.load(a_map(DOUBLED, on_error=word))

    [fault] = faults_of(refused.value)
    assert (fault.path, fault.expected) == (("on_error",), "one of fail, skip")
    assert f"'{meant}'" in fault.suggestion


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (Filter, {"when": [{"type": "exists", "field": "t"}]}),
        (Remember, {"remember": [{"field": "a", "as": "a"}]}),
        (Splitter, {"out_size": 2}),
    ],
)
def test_what_cannot_fail_on_a_message_has_no_such_key_and_says_so(kind, document):
    assert refusals(kind, {**document, "on_error": "skip"}) == [
        "on_error: unknown key 'on_error': it cannot fail on a message"
    ]


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (Reducer, {"aggregations": [{"function": "count", "as": "n"}]}),
        (Buffer, {"size": 2}),
        (HttpTransform, {"url": "https://h/", "verb": "POST"}),
    ],
)
def test_what_is_about_a_batch_has_no_such_key_and_says_so(kind, document):
    assert refusals(kind, {**document, "on_error": "skip"}) == [
        "on_error: unknown key 'on_error': it is about whole batches, and has no smaller unit to leave out"
    ]
