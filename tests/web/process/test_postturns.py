"""Turns of posts, whatever a post is: whose turn it is while pipelines are behind."""

from __future__ import annotations

import asyncio

from headrace.compiler.clock import Clock
from headrace.web.process.postturns import PostTurns
from tests.web.process.wires import standing, steps


class Noted:
    """A post that is noted when it is begun; one to ``behind`` leaves that pipeline behind."""

    disconnected = False

    def __init__(self, turns: PostTurns, begun: list[str], pipeline: str, number: int) -> None:
        self._turns, self._begun, self._name = turns, begun, f"{pipeline} {number}"
        self.pipeline = pipeline

    def begin(self) -> None:
        self._begun.append(self._name)
        if self.pipeline == "behind":
            self._turns.hold_back(self.pipeline)


async def test_a_pipeline_that_is_behind_has_one_post_a_turn_and_others_all_of_theirs() -> None:
    turns, begun = PostTurns(standing(Clock(asyncio.get_running_loop()))), list[str]()
    for number in range(3):
        turns.begin(Noted(turns, begun, "behind", number))
        turns.begin(Noted(turns, begun, "other", number))
    at_once = list(begun)
    by_turn = []
    for _ in range(4):
        await steps(1)
        by_turn.append(begun[len(at_once) + sum(map(len, by_turn)) :])

    assert at_once == ["behind 0", "other 0", "other 1", "other 2"]
    assert by_turn == [["behind 1"], ["behind 2"], [], []]


async def test_those_that_come_while_others_are_held_back_go_on() -> None:
    turns, begun = PostTurns(standing(Clock(asyncio.get_running_loop()))), list[str]()
    for number in range(3):
        turns.begin(Noted(turns, begun, "behind", number))
    await steps(1)
    turns.begin(Noted(turns, begun, "other", 0))
    turns.begin(Noted(turns, begun, "behind", 3))
    await steps(4)

    assert begun == ["behind 0", "behind 1", "other 0", "behind 2", "behind 3"]
