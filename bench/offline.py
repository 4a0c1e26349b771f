"""What authors wait for: plays of an hour and of a small test, and what `--watch` does at a change.

The bars are CPU seconds. Beside one stands the same work by hand: the messages encoded,
decoded, grouped and averaged minute by minute.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from bench.measuring import Effort
from bench.table import Row
from headrace.authoring.configfiles import catalogue
from headrace.authoring.playing.countingchain import counting
from headrace.authoring.playing.player import play
from headrace.authoring.playing.scenario import Arriving, GivenArrival, Scenario
from headrace.authoring.testing.runs import RunOptions, run, suites_of
from headrace.authoring.testing.watching import watch
from headrace.compiler.config.program import Program, load_program
from headrace.compiler.jsontext import decode, encode
from headrace.compiler.text.documents import read

MESSAGES = 20_000
HOUR = 3600.0
ROOT = Path(__file__).parents[1]

MINUTES = """
- id: minutes
  inputs: [{type: http}]
  transforms:
    - {type: buffer, seconds: 60, max_messages: 100000}
    - type: reducer
      group_by: [sensor]
      aggregations: [{function: count, as: n}, {function: avg, field: temp, as: mean}]
- id: heat
  inputs: [{type: pipeline, upstream: minutes}]
  transforms:
    - {type: filter, Numeric: {field: mean, operator: greater_than, value: 30}}
"""
DECIDING = """
- id: minutes
  inputs: [{type: http}]
  transforms:
    - {type: filter, Numeric: {field: temp, operator: less_than, value: 70}}
    - type: map
      keep: mapped
      mappings:
        - {type: copy, from: sensor}
        - {type: cast, from: time, to: date, as: day}
        - {type: copy, from: temp, default: {type: number, value: 0}}
    - {type: buffer, seconds: 60, max_messages: 100000}
    - type: reducer
      group_by: [sensor]
      aggregations: [{function: count, as: n}, {function: avg, field: temp, as: mean}]
- id: heat
  inputs: [{type: pipeline, upstream: minutes}]
  transforms:
    - {type: filter, Numeric: {field: mean, operator: greater_than, value: 30}}
"""
"""The same with what decides for each message: what a chain that counts is slowest at."""


def playhour(effort: Effort) -> list[Row]:
    """An hour of windows of a minute, 20,000 messages, two pipelines."""
    program, scenario, given = _hour()
    seconds = _seconds(lambda: play(program, scenario), effort)
    return [_row("playhour", seconds, 0.5, _seconds(lambda: _by_hand(given), effort))]


def coverage(effort: Effort) -> list[Row]:
    """An hour in the plain chain that counts branches, turn and turn about with the fused one."""
    program, scenario, _ = _hour(DECIDING)
    turns = [
        (
            _once(lambda: play(program, scenario, lowering=counting)),
            _once(lambda: play(program, scenario)),
        )
        for _ in range(min(effort.pairs, 7) + 1)
    ][1:]
    ratios = [counted / fused for counted, fused in turns]
    middle = median(ratios)
    return [
        Row(
            "coverage",
            f"{median(counted for counted, _ in turns):.3f} CPU s",
            f"fused: {median(fused for _, fused in turns):.3f} CPU s",
            f"{middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            "at most 3",
            middle <= 3,
            middle,
        )
    ]


def _hour(config: str = MINUTES) -> tuple[Program, Scenario, list[dict[str, Any]]]:
    """Return two pipelines, an hour of messages as it is played, and the messages."""
    given = [
        {"sensor": f"s{n % 10}", "temp": 20.0 + n % 60, "time": "2026-01-01T00:00:00Z", "n": n}
        for n in range(MESSAGES)
    ]
    program, _ = load_program(read(config.encode(), "config.yaml", "yaml"), catalogue())
    assert program is not None
    steps = [
        GivenArrival(round(n * HOUR / MESSAGES, 6), ("minutes", 0), Arriving([message]))
        for n, message in enumerate(given)
    ]
    return program, Scenario(steps, HOUR), given


def playsmall(effort: Effort) -> list[Row]:
    """A small test: a gate, state and a script."""
    [suite] = suites_of([ROOT / "specs" / "machines" / "config.tests.yaml"])
    words = RunOptions(words=("readings wait until",))
    [outcome] = run([suite], words)
    assert outcome.outcome == "passed"
    return [_row("playsmall", _seconds(lambda: [*run([suite], words)], effort), 0.01)]


def watchfile(effort: Effort) -> list[Row]:
    """A config changes that 20 tests depend on: it is noticed, read again, and they are run."""
    tests = [
        f"  test {n}: {{ given: {{ minutes: '(a 1s)x30 b' }}, until: 2m, expect: {{ heat: {{}} }} }}"
        for n in range(20)
    ]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")
        config.write_text(MINUTES)
        names = "messages: { a: { sensor: s, temp: 10 }, b: { sensor: s, temp: 20 } }\n"
        Path(folder, "config.tests.yaml").write_text(names + "\n".join(["tests:", *tests, ""]))
        looks = _changes(config)
        runs = watch([Path(folder)], RunOptions(jobs=1), looks)

        def changed() -> None:
            outcomes = [*next(runs).outcomes]
            assert [each.outcome for each in outcomes] == ["passed"] * len(tests)

        seconds = _seconds(changed, effort)
    return [_row("watchfile", seconds, 0.3)]


def _changes(config: Path) -> Iterator[None]:
    """Change a config before each look."""
    for n in count():
        config.write_text(f"{MINUTES}# {n}\n")
        yield


def _row(
    scenario: str, seconds: list[float], most: float, by_hand: list[float] | None = None
) -> Row:
    middle = median(seconds)
    against = "-" if by_hand is None else f"by hand: {median(by_hand):.3f} CPU s"
    return Row(
        scenario,
        f"{middle:.3f} CPU s",
        against,
        f"{middle:.3f} ({min(seconds):.3f} to {max(seconds):.3f})",
        f"at most {most:g} CPU s",
        middle <= most,
        middle,
    )


def _seconds(work: Callable[[], object], effort: Effort) -> list[float]:
    """Return the CPU seconds of each of some goes, the first of which does not count."""
    return [_once(work) for _ in range(min(effort.pairs, 7) + 1)][1:]


def _once(work: Callable[[], object]) -> float:
    """Return the CPU seconds that something takes."""
    began = process_time()
    work()
    return process_time() - began


def _by_hand(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Do the same without anything around it."""
    rows: list[dict[str, Any]] = []
    each_minute = MESSAGES // 60
    for start in range(0, MESSAGES, each_minute):
        groups: defaultdict[str, list[float]] = defaultdict(list)
        for message in given[start : start + each_minute]:
            decoded = decode(encode(message))
            groups[decoded["sensor"]].append(decoded["temp"])
        made = [
            {"sensor": sensor, "n": len(temps), "mean": sum(temps) / len(temps)}
            for sensor, temps in groups.items()
        ]
        rows += [row for row in made if row["mean"] > 30]
    return rows
