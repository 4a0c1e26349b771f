"""Rules of the house that neither the linter nor the type checker can see."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rooms import REPOSITORY, ROOMS

CLOCK = REPOSITORY / "compiler" / "clock.py"

# What asks for the time, waits for it or is woken by it. A deadline is kept by the clock as well:
# only so does an hour of it pass in no time in a test.
TIME = re.compile(
    r"""
      (time|sched|timeit)(\..+)?
    | (.+\.)?(datetime|date)\.(now|utcnow|today)
    | asyncio\.(sleep|timeout|timeout_at|wait_for)
    | (.+\.)?_?loop(\(\))?\.(time|call_later|call_at)
    | (.+\.)?get_(running_|event_)?loop\(\)\.(time|call_later|call_at)
    | threading\.Timer
    | reactivex\.scheduler\..*(Timeout|AsyncIO|ThreadSafe|NewThread|ThreadPool|EventLoop)Scheduler
    """,
    re.VERBOSE,
)
SLEEP = re.compile(r"(time|asyncio)\.sleep")

# Names of a form, not of a subject: what is in such a file belongs to somebody.
SUBJECTLESS = {"utils", "helpers", "common", "misc", "types", "base"}


def python(*folders: str) -> list[Path]:
    """Return every Python file of some folders, in order."""
    return sorted(file for folder in folders for file in (REPOSITORY / folder).rglob("*.py"))


def mentions(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything imported or reached with a dot.

    `asyncio.sleep(0)` is left out: it gives the loop a turn and waits for nothing.
    """
    turns = set[int]()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call() if gives_a_turn(node):
                turns.add(id(node.func))  # what is called comes behind the call
            case ast.Import(names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module, names):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case ast.Attribute() if id(node) not in turns:
                yield node.lineno, dotted(node)


def dotted(node: ast.Attribute) -> str:
    """Return an expression that ends in a dot and a name as text, quickly where it is nothing but names."""
    parts = [node.attr]
    owner = node.value
    while isinstance(owner, ast.Attribute):
        parts.append(owner.attr)
        owner = owner.value
    return (
        ".".join([owner.id, *reversed(parts)]) if isinstance(owner, ast.Name) else ast.unparse(node)
    )


def gives_a_turn(node: ast.AST) -> bool:
    """Say whether an expression is `asyncio.sleep(0)`."""
    match node:
        case ast.Call(ast.Attribute(ast.Name("asyncio"), "sleep"), [ast.Constant(0)], []):
            return True
    return False


def breaches(files: list[Path], rule: re.Pattern[str]) -> list[str]:
    """Return `file:line: name` of every mention that a rule forbids."""
    return [
        f"{file.relative_to(REPOSITORY)}:{line}: {name}"
        for file in files
        for line, name in mentions(file.read_text())
        if rule.fullmatch(name)
    ]


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "from time import monotonic",
        "time.monotonic()",
        "datetime.now(UTC)",
        "datetime.datetime.utcnow()",
        "dt.date.today()",
        "asyncio.sleep(1)",
        "from asyncio import sleep",
        "asyncio.wait_for(answer, 5)",
        "asyncio.timeout(5)",
        "loop.time()",
        "self._loop.call_later(1, release)",
        "asyncio.get_running_loop().call_at(1, release)",
        "from threading import Timer",
        "from reactivex.scheduler import TimeoutScheduler",
        "from reactivex.scheduler.eventloop import AsyncIOScheduler",
    ],
)
def test_a_line_that_asks_for_the_time_is_found(line: str) -> None:
    assert [name for _, name in mentions(line) if TIME.fullmatch(name)]


@pytest.mark.parametrize(
    "line",
    [
        "clock.now()",
        "await clock.sleep(1)",
        "self.clock.call_later(1, release)",
        "await asyncio.sleep(0)",
        "message.time",
        "datetime.fromisoformat(text)",
        "from datetime import datetime, timedelta",
        "loop.create_task(run)",
        "from reactivex.scheduler import CurrentThreadScheduler",
        "scheduler.schedule_relative(1, release)",
    ],
)
def test_a_line_that_asks_the_clock_is_not(line: str) -> None:
    assert [name for _, name in mentions(line) if TIME.fullmatch(name)] == []


def test_nothing_but_the_clock_asks_for_the_time_or_sleeps() -> None:
    assert breaches([file for file in python(*ROOMS) if file != CLOCK], TIME) == []


def test_no_test_sleeps() -> None:
    # The clock's own tests show that what is not the clock's follows it as well.
    files = [
        file
        for file in python("tests", "specs")
        if not file.stem.startswith("test_clock") and "sleep" in file.read_text()
    ]

    assert breaches(files, SLEEP) == []


def test_no_test_has_what_was_collected_looked_through_again() -> None:
    # What collecting the tests has made is out of the way of the collector (`tests/conftest.py`): one such
    # call, and each full look takes a second for all tests that follow in the process.
    calls = re.compile(r"^ *gc\.unfreeze\(", re.MULTILINE)

    files = python("tests", "specs", "rhai-python/tests", "bench")

    assert [str(file) for file in files if calls.search(file.read_text())] == []


def test_every_file_is_named_for_its_subject() -> None:
    named = {file.stem for file in python(*ROOMS, "tests", "specs", "bench")}

    assert named & SUBJECTLESS == set()
