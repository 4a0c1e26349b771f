"""Kills at random moments: what is given is written, or a dead letter, or told as lost or not answered."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.authoring.playing.played import Played
from headrace.authoring.playing.scenario import START, ProcessKill, ServerOutage
from headrace.authoring.verdicts.matching import Matching
from tests.authoring.playing.playing import at, played
from tests.examples import examples

CONFIG = """
- id: p
  dead_letters: true
  inputs: [{type: http, durable: true}]
  transforms: [{type: buffer, seconds: SECONDS, max_messages: 5}]
  outputs: [{type: postgres, connection: c, table: t, HOW}]
"""
HOW = ("retry: {}", "queue: {}", "queue: {max_bytes: 700, when_full: drop_oldest}")
OUT = ("p", "output", 0)
UNTIL = 600.0
BAD = ServerOutage(
    0, UNTIL, "refuses", failure="invalid", is_selective=True, like={"$has": {"bad": True}}
)

moments = st.integers(0, 160).map(lambda quarter: quarter / 4)
commits = st.one_of(st.just((0, False)), st.tuples(st.integers(1, 9), st.booleans()))


@st.composite
def kills(draw: st.DrawFn) -> list[ProcessKill]:
    """Draw kills of which none is while there is no process."""
    drawn, last = [], 0.0
    for moment in sorted(draw(st.lists(moments, min_size=1, max_size=5))):
        if moment >= last:
            commit, is_committed = draw(commits)
            last = moment + draw(st.sampled_from([0.0, 0.0, 3.5]))
            drawn.append(ProcessKill(moment, last, commit, is_committed))
    return drawn


@st.composite
def outages(draw: st.DrawFn) -> list[ServerOutage]:
    """Draw what is wrong with the database besides, until it is well again."""
    found = []
    for begins in draw(st.lists(moments, max_size=2)):
        ends = begins + draw(st.sampled_from([0.5, 5.0, 40.0]))
        kind: Any = draw(st.sampled_from(["down", "refuses", "unanswered", "slow"]))
        failure: Any = None
        if kind == "refuses":
            failure = draw(st.sampled_from(["unavailable", "misconfigured", "unclear"]))
        found.append(ServerOutage(begins, ends, kind, seconds=1.0, failure=failure))
    return sorted(found, key=lambda each: each.begins)


def numbers(came: Played) -> tuple[Counter[int], Counter[int]]:
    """Return how often which message was written, and is in a dead letter."""
    written = Counter(each["n"] for _, batch in came.written["p", 0] for each in batch)
    lettered = Counter(each["n"] for letter in came.letters for each in letter.messages or ())
    return written, lettered


@examples(20)
@given(
    posts=st.lists(
        st.tuples(moments, st.lists(st.booleans(), min_size=1, max_size=3)), max_size=12
    ),
    kills=kills(),
    outages=outages(),
    how=st.sampled_from(HOW),
    seconds=st.sampled_from([1, 4, 30]),
)
def test_nothing_is_lost_in_silence(
    posts: list[tuple[float, list[bool]]],
    kills: list[ProcessKill],
    outages: list[ServerOutage],
    how: str,
    seconds: int,
):
    every = [(moment, bad) for moment, some in posts for bad in some]
    bad = {n for n, (_, is_bad) in enumerate(every) if is_bad}
    steps, first = [], 0
    for moment, some in posts:
        batch = [{"n": first + at, "bad": is_bad} for at, is_bad in enumerate(some)]
        steps.append(at(moment, "p", *batch))
        first += len(some)

    came = played(
        CONFIG.replace("HOW", how).replace("SECONDS", str(seconds)),
        *sorted(steps, key=lambda each: each.at),
        until=UNTIL,
        kills=kills,
        outages={OUT: [*outages, BAD]},
        matches=Matching(START).holds,
    )

    written, lettered = numbers(came)
    assert not bad & written.keys()
    missing = set(range(first)) - written.keys() - lettered.keys()
    not_taken = 3 * (
        came.unanswered["p"] + came.refused["p"]
    )  # posts have so many messages at most
    assert len(missing) <= not_taken + came.lost.total()
    if "drop_oldest" not in how:
        assert not came.lost
