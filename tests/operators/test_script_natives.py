"""What the engine does by itself takes time that grows with a text, a list or an object, and no faster.

A function of the engine cannot be paused in its midst. The functions are those of the language's own
list, which a test holds against the engine: a new one is tried as well.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from rhai import Paused, Script, ScriptError

from headrace.operators.script.compiling import LIMITS
from headrace.operators.script.names import FUNCTIONS

SHORT, LONG = 4_000, 16_000
"""What grows with the square takes sixteen times as long for the long one."""
LITTLE_SECONDS = 0.02
FREE = {**LIMITS, "max_operations": 10**9, "time_limit": 60.0}

ARGUMENTS = [
    "", "2", "half", "1, half", "half, 7", '"a"', '"t1"', '"a", "bb"', "same", "half, same", "0..half",
    "0..half, same", '"aaaab"', '"b", half',
]  # fmt: skip
OPERATIONS = [
    "msg == same", "msg < same", "msg + same", 'msg - "a"', "same in msg", '"zz" in msg', "7 in msg",
    "msg += same", "msg[half]", "msg[-1]", "msg[0..half]", "`${msg}`", "for each in msg {}",
    "switch msg { 1 => 2, _ => 3 }",
]  # fmt: skip


def given(size: int) -> dict[str, Any]:
    """Return one of everything that has a length."""
    chance = random.Random(size)
    return {
        "numbers": [chance.randrange(10**6) for _ in range(size)],
        "texts": [f"t{chance.randrange(10**6)}" for _ in range(size)],
        "lists": [[each % 7] for each in range(size)],
        "text": "ab" * (size // 2),
        "blanks": " a" * (size // 2),
        "wide text": "é" * size,
        "list as text": "[" + "1," * (size // 2) + "1]",
        "object": {f"k{each}": each for each in range(size)},
    }


def ways() -> Iterator[str]:
    """Yield everything that is tried: most is refused of most."""
    for name in sorted(FUNCTIONS):
        yield from (f"msg.{name}({arguments})" for arguments in ARGUMENTS)
    yield from OPERATIONS


def script(way: str, size: int) -> Script:
    return Script(f"let half = {size // 2}; let same = msg; {way}; 1", **FREE)


def seconds(way: str, size: int, value: Any) -> float:
    """Return what something takes, also if it is refused for what would come of it."""
    compiled = script(way, size)
    began = time.process_time()
    with suppress(ScriptError):
        compiled.run(value)
    return time.process_time() - began


def taken_by(value: Any) -> list[str]:
    """Return what works on a value."""
    works = []
    for way in ways():
        with suppress(ScriptError):
            script(way, len(value)).run(value)
            works.append(way)
    return works


def grows_faster(way: str, short: Any, long: Any) -> bool:
    """Whether something takes more than ten times as long for what is four times as long."""
    for _ in range(3):  # a machine that is busy is no reason
        if seconds(way, LONG, long) <= LITTLE_SECONDS + 10 * seconds(way, SHORT, short):
            return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("what", given(1))
def test_a_function_takes_time_that_grows_with_what_it_is_given_no_faster(what: str) -> None:
    works = taken_by(given(8)[what])

    short, long = given(SHORT)[what], given(LONG)[what]
    slow = [way for way in works if seconds(way, LONG, long) > LITTLE_SECONDS]

    assert len(works) > 20
    assert [way for way in slow if grows_faster(way, short, long)] == []


@pytest.mark.long
def test_one_that_grows_faster_would_be_found() -> None:
    way = "for each in msg { msg.contains(-1); }"

    # A machine that is busy when the short one is measured hides it.
    assert any(grows_faster(way, [1] * 2_000, [1] * 8_000) for _ in range(5))


@pytest.mark.parametrize(
    "way",
    [
        "drain(|x| true)", "retain(|x| false)", "filter(|x| true)", "map(|x| x)", "sort(|x, y| 1)",
        "dedup(|x, y| true)", "find(|x| false)", "for_each(|x| 1)", "reduce(|sum, x| 1)",
        "some(|x| false)", "all(|x| true)", "index_of(|x| false)", "order_by(|x, y| 1)",
    ],
)  # fmt: skip
def test_a_function_that_calls_the_script_can_be_paused_in_its_midst(way: str) -> None:
    # Two of them, drain and retain, move all that follows with each item: so it is this that bounds them.
    run = Script(f"msg.{way}; 1", **FREE).start([[1] * LONG], 0.0005)

    assert isinstance(run, Paused)
    run.close()
