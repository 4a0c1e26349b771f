"""Dry runs of chains: what each stage hands on, what it lets go of later, where it ends."""

import asyncio
import logging
from datetime import timedelta
from itertools import cycle, islice

import pytest
from reactivex import Observable
from reactivex import operators as ops

from headrace.authoring.playing.playedenvironment import Surroundings
from headrace.compiler.component.families import Transform
from headrace.compiler.runtime.componentcontext import MOST_SAID
from headrace.compiler.schema.fields import ConnectionName, SecretText
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from tests.authoring.dryrun.building import builds
from tests.authoring.dryrun.dryrunning import NEW_YEAR, handed_on, tried
from tests.peer import peer, replies
from tests.stand_ins import does


class Needing(Transform, kind="needing"):
    """A transform that names what has to be filed or found, and takes whatever is there."""

    connection: str = option(ConnectionName("kafka"), "One that nobody has filed.")
    token: Secret = option(SecretText(), "One that nothing resolves.")


HOT = {"type": "filter", "Numeric": {"field": "n", "operator": "greater_than", "value": 1}}
PAIRS = {"type": "splitter", "out_size": 2}
ONE_BY_ONE = {"type": "splitter", "out_size": 1}
REMEMBER = {"type": "remember", "remember": [{"field": "mode", "as": "mode"}]}
RECALL = {"type": "recall", "recall": ["mode"]}
AUTO = {
    "conditions": [{"type": "string", "field": "mode", "operator": "equal_to", "value": "auto"}]
}
STATE = {"bucket": "b"}


def numbered(count):
    return [{"n": n} for n in range(count)]


def window(seconds):
    return {"type": "buffer", "seconds": seconds, "max_messages": 100}


def script(code, scope="message"):
    return {"type": "script", "scope": scope, "source": {"type": "inline", "code": code}}


def test_every_stage_shows_the_batches_it_handed_on():
    trial = tried([HOT, PAIRS, {"type": "buffer", "size": 3}], numbered(7))

    assert trial.failure is None
    assert handed_on(trial) == [
        [[{"n": 2}, {"n": 3}, {"n": 4}, {"n": 5}, {"n": 6}]],
        [[{"n": 2}, {"n": 3}], [{"n": 4}, {"n": 5}]],
        [[{"n": 2}, {"n": 3}, {"n": 4}]],
    ]


def test_what_is_still_held_is_handed_on_nowhere():
    trial = tried([window(10), {"type": "buffer", "size": 1}], numbered(2))

    assert handed_on(trial) == [[], []]
    assert handed_on(trial, flushed=True) == [[], []]


def test_no_messages_go_in_as_no_batch():
    trial = tried([script("emit([1])", "batch")], [])

    assert handed_on(trial) == [[]]


def test_time_that_is_moved_on_releases_windows_one_after_the_other():
    chain = [window(10), window(20), {"type": "map", "mappings": [{"type": "drop", "from": ["n"]}]}]

    early = tried(chain, numbered(1), advance=29.9)
    late = tried(chain, numbered(1), advance=30)

    assert handed_on(early, flushed=True) == [[[{"n": 0}]], [], []]
    assert handed_on(late, flushed=True) == [[[{"n": 0}]], [[{"n": 0}]], [[{}]]]
    assert handed_on(late) == [[], [], []]


def test_the_clock_starts_when_it_is_told_to_and_moves_with_the_windows():
    stamp = script("emit(now())")

    trial = tried([stamp, window(3600), stamp], [{}], advance=3600)

    assert handed_on(trial)[0] == [[NEW_YEAR.isoformat(timespec="microseconds")]]
    later = (NEW_YEAR + timedelta(hours=1)).isoformat(timespec="microseconds")
    assert handed_on(trial, flushed=True)[2] == [[later]]


def test_a_gate_that_a_later_stage_opens_lets_go_of_the_rest_as_a_flush():
    gated = {"type": "buffer", "size": 2, "until": AUTO}
    messages = [{"mode": "auto", "n": n} for n in range(5)]

    trial = tried([gated, REMEMBER], messages, state=STATE)

    for stage in (0, 1):
        assert handed_on(trial)[stage] == [messages[:2], messages[2:4]]
        assert handed_on(trial, flushed=True)[stage] == [messages[4:]]


def test_a_gate_that_is_open_already_makes_no_flush():
    gated = {"type": "buffer", "size": 2, "until": AUTO}
    messages = [{"mode": "auto", "n": n} for n in range(3)]

    trial = tried([gated, REMEMBER], messages, state=STATE, seeds={"": {"mode": "auto"}})

    assert handed_on(trial)[0] == [messages[:2], messages[2:]]
    assert handed_on(trial, flushed=True) == [[], []]


@pytest.mark.parametrize(
    "remembers", [REMEMBER, script("remember(``, #{mode: msg.mode}); emit(msg);")]
)
def test_a_gate_that_an_earlier_stage_opens_makes_no_flush(remembers):
    gated = {"type": "buffer", "max_messages": 9, "until": AUTO}
    messages = [{"mode": mode} for mode in ("off", "off", "auto")]

    trial = tried([ONE_BY_ONE, remembers, gated], messages, state=STATE)

    assert handed_on(trial)[2] == [messages[:2], messages[2:]]
    assert handed_on(trial, flushed=True)[2] == []


def test_two_gates_that_an_earlier_stage_opens_make_no_flush_either():
    pairs = {"type": "buffer", "size": 2, "until": {**AUTO, "key": "pairs"}}
    all = {"type": "buffer", "max_messages": 9, "until": {**AUTO, "key": "all"}}
    opens = "remember(`all`, #{mode: `auto`}); remember(`pairs`, #{mode: `auto`});"
    both = script(f"if msg == 4 {{ {opens} }} emit(msg);")

    trial = tried([ONE_BY_ONE, both, pairs, all, ONE_BY_ONE], [1, 2, 3, 4], state=STATE)

    assert handed_on(trial)[2:] == [
        [[1, 2], [3], [4]],
        [[1, 2], [3], [4]],
        [[1], [2], [3], [4]],
    ]
    assert handed_on(trial, flushed=True) == [[]] * 5


def test_what_is_made_of_a_flush_is_one_and_opens_as_one():
    gated = {"type": "buffer", "max_messages": 9, "until": AUTO}

    trial = tried([window(5), REMEMBER, gated], [{"mode": "auto"}], state=STATE, advance=5)

    assert handed_on(trial) == [[], [], []]
    assert handed_on(trial, flushed=True) == [[[{"mode": "auto"}]]] * 3


def test_the_bucket_is_its_own_and_begins_with_what_it_is_given():
    trial = tried(
        [RECALL, REMEMBER],
        [{"m": "a"}, {"m": "b", "mode": "off"}],
        state={"bucket": "b", "key": "m"},
        seeds={"a": {"mode": "auto", "n": 1}},
    )

    assert handed_on(trial)[1] == [[{"m": "a", "mode": "auto"}]]
    assert trial.remembered["a"] == {"mode": "auto", "n": 1}


def test_a_failing_stage_ends_it_and_those_before_it_are_shown():
    cast = {"type": "map", "mappings": [{"type": "cast", "from": "n", "to": "integer"}]}

    trial = tried([HOT, cast, PAIRS], [{"n": 2}, {"n": 2.5}])

    assert trial.failure is not None
    assert (trial.failure.at, trial.failure.phase) == (1, "apply")
    assert trial.failure.message.startswith("mapping 0 ('cast'): field 'n': ")
    assert handed_on(trial) == [[[{"n": 2}, {"n": 2.5}]]]


def test_the_first_stage_counts_where_several_fail():
    late = script("if msg == 1 { throw `late`; } emit(msg)")
    early = script("if msg == 2 { throw `early`; } emit(msg)")

    trial = tried([ONE_BY_ONE, early, late], [1, 2])

    assert trial.failure.at == 1
    assert handed_on(trial) == [[[1], [2]]]


def test_after_a_failure_no_time_passes():
    failing = script("if msg == 1 { throw `no`; } emit(msg)")

    trial = tried([window(5), failing], [1], advance=4)
    assert trial.failure is None

    trial = tried([ONE_BY_ONE, failing, window(5)], [1, 2], advance=9)
    assert trial.failure.at == 1
    assert trial.stages[2].handed_on == []


def test_after_a_failure_nothing_more_is_handed_in_and_no_time_passes():
    failing = script("if msg == 1 { throw `no`; } emit(msg)")

    trial = tried(
        [window(5), {"type": "buffer", "seconds": 2, "max_messages": 9}, failing], [1], (9, [2])
    )
    assert trial.failure.at == 2
    assert handed_on(trial, flushed=True) == [[[1]], [[1]]]

    trial = tried([window(5), script("throw 1")], [1], (2, [2]), (6, [3]), (20, [4]))
    assert handed_on(trial) == [[]]
    assert handed_on(trial, flushed=True) == [[[1, 2]]]


def test_a_batch_comes_when_the_one_before_is_through_and_later_by_a_moment():
    remember = {"type": "remember", "remember": [{"field": "n", "as": "n"}]}
    state = {"bucket": "b", "key": "id"}

    trial = tried([remember], [{"id": "a", "n": 1}], (0, [{"id": "b", "n": 2}]), state=state)

    assert [*trial.remembered] == ["b", "a"]


def test_every_transform_that_cannot_be_built_is_told():
    gated = {"type": "buffer", "max_messages": 9, "until": {**AUTO, "bucket": "other"}}

    trial = tried([gated, HOT, RECALL], numbered(1))

    assert [(index, fault.code) for index, fault in trial.refusals] == [
        (0, "unknown-bucket"),
        (2, "no-state"),
    ]
    assert [stage.handed_on for stage in trial.stages if stage.handed_on] == []


def test_what_a_transform_warns_of_comes_back():
    trial = tried([HOT, script("warn(`odd`); emit(msg);")], [{}, {"n": 2}, {"n": 3}])

    assert [trial.warnings(stage) for stage in trial.stages] == [
        ["dropped a message whose 'n' is not a number"],
        ["script: odd"],
    ]


DEEP = [
    {"type": "buffer", "size": 1},
    {"type": "buffer", "max_messages": 9, "until": AUTO},
    {"type": "remember", "remember": [{"field": "mode", "as": "mode"}]},
    {"type": "recall", "recall": ["mode"]},
    {
        "type": "reducer",
        "group_by": ["n", "mode"],
        "aggregations": [{"function": "count", "as": "c"}],
    },
    {"type": "splitter", "out_size": 1},
    HOT,
    script("emit(msg)"),
    script("emit(batch)", "batch"),
]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("stages", [*([each] for each in DEEP), DEEP])
def test_a_chain_may_be_as_long_as_a_request_allows(stages, traced):
    chain = [*islice(cycle(stages), 100)]

    trial = tried(
        chain,
        [{"n": 2, "mode": "auto"}],
        state=STATE,
        seeds={"": {"mode": "auto"}},
        traced=traced,
    )

    assert trial.failure is None
    assert [message["n"] for message in handed_on(trial)[99][0]] == [2]


def test_a_stage_may_not_hand_on_without_end():
    trial = tried([does(lambda batch: [batch] * 3), HOT], numbered(2), handed_on=5)

    assert trial.failure.at == 0
    assert trial.failure.message == "handed on more than 5 messages: no further here"


def test_a_bucket_that_is_full_does_not_show_in_the_log(caplog):
    remember = {"type": "remember", "remember": [{"field": "n", "as": "n"}]}
    messages = [{"id": "a", "n": 1}, {"id": "b", "n": 2}]

    trial = tried([remember], messages, state={"bucket": "machines", "key": "id"}, keys=1)

    assert trial.remembered == {"b": {"n": 2}}
    assert caplog.messages == []


async def test_a_post_to_a_server_is_a_real_one_and_takes_no_virtual_time():
    stamp = script("emit([msg, now()])")
    async with peer() as server:
        server.answers = [replies("[1, 2]")]
        post = {"type": "http", "verb": "POST", "url": server.url()}
        chain = [post, window(1), stamp]
        trial = await asyncio.to_thread(tried, chain, [{"n": 1}], advance=1)

    assert server.bodies() == [b'[{"n":1}]']
    assert handed_on(trial)[0] == [[1, 2]]
    second = (NEW_YEAR + timedelta(seconds=1)).isoformat(timespec="microseconds")
    assert handed_on(trial, flushed=True)[2] == [[[1, second], [2, second]]]


def test_what_a_transform_names_has_to_be_there():
    trial = tried([Needing.load({"connection": "plant", "token": "${NO_SUCH_NAME}"})], [1])

    assert [(index, fault.code) for index, fault in trial.refusals] == [
        (0, "unknown-connection"),
        (0, "unresolved-secret"),
    ]


def test_there_is_no_other_pipeline_to_read_from():
    trial = tried([builds(lambda ctx: ctx.attach("p1"))], [1])

    assert [fault.code for _, fault in trial.refusals] == ["missing-upstream"]


def test_of_many_warnings_the_first_are_kept():
    def warning(ctx):
        for number in range(2 * MOST_SAID):
            ctx.warn(str(number))
        return ctx.lift(lambda batch: [batch])

    trial = tried([builds(warning)], [1])

    assert trial.warnings(trial.stages[0]) == [str(number) for number in range(MOST_SAID)]


def ends(source):
    return source.pipe(ops.map(lambda delivery: delivery.nothing))


def raises(source):
    def subscribe(observer, scheduler=None):
        return source.subscribe(lambda delivery: delivery.nothing, scheduler=scheduler)

    return Observable(subscribe)


@pytest.mark.parametrize("operator", [ends, raises])
def test_a_fault_of_ours_is_no_outcome(operator):
    with pytest.raises(RuntimeError, match="has no attribute 'nothing'"):
        tried([builds(lambda _: operator)], [1])


def test_nothing_of_a_dry_run_is_logged(caplog):
    with caplog.at_level(logging.INFO):
        trial = tried([script("warn(`odd`); throw `no`;")], [1])

    assert (trial.failure.at, trial.warnings(trial.stages[0])) == (0, ["script: odd"])
    assert caplog.messages == []


def test_others_go_on_to_log_meanwhile(caplog):
    def logs(ctx):
        logging.getLogger("headrace.pipeline").warning("said by another")
        return ctx.lift(lambda batch: [batch])

    tried([builds(logs)], [1])

    assert caplog.messages == ["said by another"]


def test_a_client_is_closed_when_all_is_over():
    closed = []

    async def close():
        closed.append(True)

    def closing(ctx):
        ctx.on_finish(close)
        return ctx.lift(lambda batch: [batch])

    tried([builds(closing)], [1])

    assert closed == [True]


def test_a_dry_run_keeps_no_credential():
    surroundings = Surroundings()
    redact, seen = surroundings.secrets.redact, []

    def hides(ctx):
        ctx.hide("written-out")
        seen.append(redact("written-out"))
        return ops.map(lambda batch: batch)

    tried([builds(hides)], [1], surroundings=surroundings)

    assert seen == ["***"]
    assert len(redact) == 0
