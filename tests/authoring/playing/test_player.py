"""The player itself: refusals, loops, and that a play is the same each time."""

import asyncio
import logging
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.authoring.playing.played import Played
from headrace.authoring.playing.playedenvironment import Surroundings
from headrace.authoring.playing.player import on_a_loop, play
from headrace.authoring.playing.playlength import MOMENTS_EACH, PipelineWork, PlayTooLong
from headrace.authoring.playing.scenario import Scenario
from headrace.compiler.clock import VirtualLoop
from headrace.compiler.errors import Refused
from tests.authoring.playing.playing import at, played, program

SCRIPT = """
- id: p
  inputs: [{type: http}]
  transforms:
    - {type: script, source: {type: file, path: it.rhai}}
"""

COUNTED = """
- id: p
  inputs: [{type: mqtt, connection: c, topic: t, envelope: {type: merge}}]
  transforms:
    - {type: buffer, seconds: 10, max_messages: 100}
    - {type: splitter, out_size: 2}
"""


def test_the_wall_shows_what_the_script_says():
    came = played(
        COUNTED,
        at(1, "p", {}),
        at(2, "p", {}),
        until=11,
        started_at=datetime(2030, 1, 1, tzinfo=UTC),
    )

    [(moment, [first, _])] = came.handed_on["p"]
    assert moment == 11
    assert first["_meta"]["received_at"] == "2030-01-01T00:00:01.000000+00:00"


@pytest.mark.engine
def test_a_program_that_cannot_be_built_is_refused_with_its_reasons(tmp_path: Path):
    (tmp_path / "it.rhai").write_text("emit(msg);")
    checked = program(SCRIPT, tmp_path)
    (tmp_path / "it.rhai").unlink()

    with pytest.raises(Refused, match="there is no script file 'it"):
        play(checked, Scenario(), base=tmp_path)


def test_a_play_may_end_at_the_first_failure():
    config = """
- id: p
  inputs: [{type: http}]
  transforms:
    - {type: buffer, seconds: 2, max_messages: 9}
    - {type: map, mappings: [{type: cast, from: n, to: integer}]}
"""
    steps = [at(moment, "p", {"n": "x"}) for moment in (1, 2, 4, 9)]

    whole = played(config, *steps, until=20)
    ended = played(config, *steps, until=20, ends_on_failure=True)

    assert [each.at for each in whole.failures] == [3, 6, 11]
    assert [each.at for each in ended.failures] == [3]


def test_names_are_looked_up_in_surroundings_that_are_real():
    config = COUNTED + "  outputs: [{type: redis, connection: c, channel: t}]\n"
    came = Played()

    with pytest.raises(Refused, match="there is no mqtt connection 'c'"):
        play(program(config), Scenario(), surroundings=Surroundings(), played=came)

    assert [(*where, fault.code) for where, fault in came.objections] == [
        ("p", "input", 0, "unknown-connection"),
        ("p", "output", 0, "unknown-connection"),
    ]


async def test_a_play_runs_where_a_loop_runs_already():
    assert asyncio.get_running_loop().is_running()

    came = played(COUNTED, at(1, "p", {}), at(2, "p", {}), until=20)

    assert len(came.handed_on["p"]) == 1


def test_a_play_is_the_same_each_time():
    steps = [at(moment / 7, "p", {"n": moment}) for moment in range(200)]

    one, other = (played(COUNTED, *steps, until=30) for _ in range(2))

    assert one == other


def test_nothing_is_logged(caplog: pytest.LogCaptureFixture):
    config = COUNTED + "  outputs: [{type: redis, connection: c, channel: t}]\n"

    with caplog.at_level(logging.DEBUG):
        came = played(config, at(1, "p", 5), until=2)

    assert came.failures or came.warnings
    assert not [record for record in caplog.records if record.name.startswith("headrace")]


TICKING = "- {id: t, inputs: [{type: dummy, duration: 1}]}\n"


def test_a_play_takes_as_many_moments_as_it_may():
    with pytest.raises(PlayTooLong) as stopped:
        played(TICKING, until=36_500 * 86_400, max_moments=500)

    # The first step is the end of it: nothing was given.
    assert (stopped.value.moments, stopped.value.at) == (500, 500)
    assert stopped.value.busiest == PipelineWork("t", 500, 500, 0)
    assert str(stopped.value) == (
        "timers were due at 500 moments, and no more may pass: it is not over after 0:08:20, and"
        " 't' (500 messages in, 500 out, 0 failures) has done the most; end it earlier, have timers be due"
        " less often, or allow more with 'max_moments' (a command: --max-moments)"
    )


def test_what_is_given_lets_more_moments_pass():
    day = [at(hour, "p", {}) for hour in range(24)]
    config = TICKING + COUNTED.removeprefix("\n")

    came = played(config, *day, until=MOMENTS_EACH * 24, max_moments=10)

    assert len(came.handed_on["t"]) == MOMENTS_EACH * 24


def test_a_play_that_is_bounded_by_something_else_takes_any_number():
    came = played(TICKING, until=2_000, max_moments=None)

    assert len(came.handed_on["t"]) == 2_000


def test_what_came_is_written_out_by_nobody():
    """A runner puts its task where `signal` writes it out, with its result, however large that is."""
    written = []

    class Result:
        def __repr__(self) -> str:
            written.append(self)
            return "result"

    async def perform(loop: VirtualLoop) -> Result:
        return Result()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = on_a_loop(perform, Scenario())
    finally:
        signal.signal(signal.SIGINT, before)

    assert isinstance(result, Result)
    assert written == []
