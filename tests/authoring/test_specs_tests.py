"""The tests of the specs hold what their configs say, and say the same each time."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path as FilePath
from typing import Any

import pytest

from headrace.authoring.playing.countingchain import counting
from headrace.authoring.testing.coverage import coverage, text_of
from headrace.authoring.testing.outcomes import has_failed
from headrace.authoring.testing.running import run_case
from headrace.authoring.testing.runs import RunOptions, one, run, suites_of
from headrace.authoring.testing.suites import Suite
from headrace.authoring.updating.rewriting import rewritten
from headrace.compiler.text.diagnostics import Path, path_text
from headrace.compiler.text.documents import Document, read_file
from tests.authoring.playedspecs import told
from tests.server import COMMAND, environment

REPOSITORY = FilePath(__file__).parents[2]
SPECS = REPOSITORY / "specs"
WITH_SCRIPT = ("machines", "plant")
SEEDS = (0, 1, 2, 3)
QUICKLY = RunOptions(tells_why=False)
MANY = 5000
"""A test that is given more takes seconds, and each message of it is as the one before."""
FLOOD = re.compile(r"x\d{5,}")
HERE = sorted(
    each.parent
    for each in SPECS.glob("*/config.yaml")
    if find_spec("rhai") or each.parent.name not in WITH_SCRIPT
)

EXCUSED = {
    "what a broker is told, and how it delivers": (
        r"inputs\.(topic|group|start_at|qos|ack|max_batch|publish_interval_ms|queue_size|browse\.\w+)"
    ),
    "where something is written: nothing is": (
        r"outputs\.(topic|key|headers\.topic|channel|path|prefix|partition|rotate\.\w+"
        r"|table|primary_key|indexes\.columns)"
    ),
    "the table is not there: values that fit one type fit others": r"outputs\.columns\.type",
    "there is no row without it": r"outputs\.columns\.nullable (?!.*status)",
    "there is no other field": r"outputs\.on_extra_fields",
    "time goes on: the first is the least, the last the greatest": (
        r"transforms\.aggregations\.function (first min|last max)"
    ),
    "a time that is written as times are is the same when it is read": (
        r"transforms\.mappings\.type copy (?=.*\btime)"
    ),
    "no mode that there is begins with another": (
        r"transforms\.until\.conditions\.operator equal_to (?=.*\bstarts_with)"
    ),
    "it takes 200 presses": r"state\.machines\.max_keys",
}
"""What no test can notice, or none should, by why: keys without places, and what stands in its place."""

OTHERS = "max min time starts_with"


def constants(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield what a config says, piece by piece, each with where it stands."""
    if isinstance(value, dict | list):
        for step, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from constants(member, (*path, step))
    elif value is not None:
        yield path, value


class Changed:
    """A copy of a spec, with one constant in the place of another."""

    def __init__(self, spec: FilePath, folder: FilePath) -> None:
        shutil.copytree(spec, folder)
        self._config = folder / "config.yaml"
        self._tests = folder / "config.tests.yaml"
        self._quick = folder / "quick.tests.json"
        self._quick.write_text(json.dumps(without_floods(read_file(self._tests).value)))
        self.document: Document = read_file(self._config)

    def suites(self, path: Path, value: Any) -> Iterator[Suite]:
        """Yield the tests of a config that says something else: the quick ones, then all of them."""
        self._config.write_text(rewritten(self.document, {path: value}))
        for file in (self._quick, self._tests):
            yield from suites_of([file])

    def unnoticed(self, path: Path, value: Any) -> Iterator[Any]:
        """Yield what may stand in the place of a constant with no test failing.

        A number is one more, a text has a letter more. Where only certain words may stand it is each of
        the others with which the config is not refused.
        """
        if isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int | float):
            others = [value + 1]
        else:
            others = [f"{value}x"]
            suite = next(self.suites(path, *others))
            if suite.tests is None:
                others = [each for each in words_of(suite) if each != value]
        for other in others:
            if not any(map(is_noticed, self.suites(path, other))):
                yield other


def without_floods(tests: Any) -> Any:
    """Return a file of tests without those to which ten thousand messages come, and more."""
    few = {name: each for name, each in tests["tests"].items() if not FLOOD.search(str(each))}
    return {"config": "config.yaml", **tests, "tests": few}


def words_of(suite: Suite) -> list[str]:
    """Return what could stand where a config is refused, if these are certain words."""
    said = suite.diagnostics[0].expected or ""
    return said.removeprefix("one of ").split(", ") if said.startswith("one of ") else []


def is_noticed(suite: Suite) -> bool:
    """Return whether a test fails, or none can be run."""
    outcomes = (one(suite, case, QUICKLY).outcome for case in suite.cases())
    return suite.tests is None or "failed" in outcomes


def test_each_spec_is_among_them() -> None:
    specs = {spec.parent.name for spec in SPECS.glob("*/config.yaml")}
    without_engine = set() if find_spec("rhai") else {*WITH_SCRIPT}

    assert {each.name for each in HERE} == specs - without_engine


def specs(*quick: str) -> Iterator[Any]:
    """Yield the specs as parameters; what is not ``quick`` is for `make test-all`."""
    for each in HERE:
        long = [] if each.name in quick else [pytest.mark.long]
        yield pytest.param(each, id=each.name, marks=long)


@pytest.mark.parametrize("spec", [*specs("hello")])
def test_a_constant_that_is_another_fails_a_test(spec: FilePath, tmp_path: FilePath) -> None:
    changed = Changed(spec, tmp_path / spec.name)
    found = dict(constants(changed.document.value))

    unnoticed = [
        f"{path_text(path)}: {other} for {value}"
        for path, value in found.items()
        if not is_excused(path, value)
        for other in changed.unnoticed(path, value)
        if not is_excused(path, value, other)
    ]

    assert len(found) > 20
    assert unnoticed == []


def is_excused(path: Path, *said: Any) -> bool:
    """Return whether no test can notice something else at a place, or something certain."""
    keys = ".".join(step for step in path if isinstance(step, str))
    text = " ".join([keys.removeprefix("pipelines."), *map(str, said)])
    return any(re.match(rf"{each}\b", text) for each in EXCUSED.values())


@pytest.mark.parametrize("spec", [*specs("hello", "brokers", "machines", "plant", "weather")])
def test_each_branch_of_a_spec_is_taken_by_a_test(spec: FilePath) -> None:
    suites = suites_of([spec / "config.tests.yaml"])

    outcomes = [*run(suites, RunOptions(jobs=1, counts=True))]
    *untaken, last = text_of(coverage(suites, outcomes))

    assert not has_failed(outcomes)
    assert last.endswith("branches, 100.0 %"), untaken


@pytest.mark.parametrize("spec", [*specs("hello", "brokers", "machines", "plant", "weather")])
def test_the_chain_that_counts_makes_what_the_fused_one_makes(spec: FilePath) -> None:
    [suite] = suites_of([spec / "config.tests.yaml"])
    assert suite.tests is not None
    assert suite.config is not None
    assert suite.config.program is not None

    some = [each for each in suite.cases() if len(each.given) < MANY]
    verdicts = [
        run_case(suite.tests, each, suite.config.program, suite.config.base, lowering=counting)
        for each in some
    ]

    assert len(some) > 1
    assert [each.case.name for each in verdicts if not each.has_passed] == []


@pytest.mark.engine
@pytest.mark.parametrize("why", EXCUSED)
def test_each_excuse_is_one_of_a_constant(why: str) -> None:
    texts = [
        " ".join(
            [
                ".".join(step for step in path if isinstance(step, str)),
                f"{value} {OTHERS}",
            ]
        )
        for spec in HERE
        for path, value in constants(read_file(spec / "config.yaml").value)
    ]

    assert any(re.search(EXCUSED[why], text) for text in texts)


def test_what_is_told_depends_on_no_hash_seed() -> None:
    command = [COMMAND, "test", "--format", "json", "docs/testing/wrong.tests.yaml"]
    said = _with_seeds(command, returns=1)
    without_times = {
        "\n".join(line for line in each.splitlines() if '"seconds":' not in line) for each in said
    }

    assert len(without_times) == 1
    assert '"differs"' in without_times.pop()


@pytest.mark.long
def test_what_comes_of_the_specs_depends_on_no_hash_seed() -> None:
    came = _with_seeds([sys.executable, "-m", "tests.authoring.playedspecs"], returns=0)

    assert len({*came}) == 1
    assert all(f"--- specs/{spec.name}/config.tests.yaml" in came[0] for spec in HERE)


@pytest.mark.parametrize("spec", [*specs("hello", "brokers", "machines")])
def test_what_comes_of_a_spec_is_the_same_twice_in_one_process(spec: FilePath) -> None:
    once, again = ("".join(told(spec / "config.tests.yaml")) for _ in range(2))

    assert once == again
    assert len(once) > 200


def _with_seeds(command: list[Any], *, returns: int) -> list[str]:
    """Return what a command prints, by the seed of its hashes."""
    running = [
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment(), "PYTHONHASHSEED": str(seed)},
        )
        for seed in SEEDS
    ]
    said = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [returns] * len(SEEDS)
    return said
