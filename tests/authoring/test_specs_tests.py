"""The tests of the specs hold what their configs say, and say the same each time."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path as FilePath
from typing import Any

import pytest

from headrace.authoring.playing.countingchain import counting
from headrace.authoring.testing.coverage import coverage, text_of
from headrace.authoring.testing.outcomes import has_failed
from headrace.authoring.testing.running import run_case
from headrace.authoring.testing.runs import RunOptions, run, suites_of
from headrace.authoring.updating.rewriting import rewritten
from headrace.compiler.text.diagnostics import Path, path_text
from headrace.compiler.text.documents import read_file
from tests.server import COMMAND, environment

REPOSITORY = FilePath(__file__).parents[2]
SPECS = REPOSITORY / "specs"
WITH_SCRIPT = ("machines", "plant")
MANY = 5000
"""A test that is given more takes seconds, and each message of it is as the one before."""


def numbers(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where the numbers are that the transforms of a config have."""
    if isinstance(value, dict | list):
        for step, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(member, (*path, step))
    elif isinstance(value, int | float) and not isinstance(value, bool) and "transforms" in path:
        yield path


CONSTANTS = [
    pytest.param(spec.name, path, id=f"{spec.name}.{path_text(path)}")
    for spec in sorted(each for each in SPECS.iterdir() if (each / "config.yaml").exists())
    for path in numbers(read_file(spec / "config.yaml").value)
    if find_spec("rhai") or spec.name not in WITH_SCRIPT
]


def test_each_spec_is_among_them() -> None:
    specs = {spec.parent.name for spec in SPECS.glob("*/config.yaml")}
    without_engine = set() if find_spec("rhai") else {*WITH_SCRIPT}

    assert {each.values[0] for each in CONSTANTS} == specs - without_engine


@pytest.mark.parametrize(("spec", "path"), CONSTANTS)
def test_a_number_that_is_one_more_fails_a_test(tmp_path: FilePath, spec: str, path: Path) -> None:
    shutil.copytree(SPECS / spec, folder := tmp_path / spec)
    document = read_file(config := folder / "config.yaml")
    number = document.value
    for step in path:
        number = number[step]
    config.write_text(rewritten(document, {path: number + 1}))

    options = RunOptions(jobs=1, stops=True, tells_why=False)
    outcomes = [*run(suites_of([folder / "config.tests.yaml"]), options)]

    assert outcomes[-1].outcome == "failed"


@pytest.mark.parametrize("spec", sorted({each.values[0] for each in CONSTANTS}))
def test_each_branch_of_a_spec_is_taken_by_a_test(spec: str) -> None:
    suites = suites_of([SPECS / spec / "config.tests.yaml"])

    outcomes = [*run(suites, RunOptions(jobs=1, counts=True))]
    *untaken, last = text_of(coverage(suites, outcomes))

    assert not has_failed(outcomes)
    assert last.endswith("branches, 100.0 %"), untaken


@pytest.mark.parametrize("spec", sorted({each.values[0] for each in CONSTANTS}))
def test_the_chain_that_counts_makes_what_the_fused_one_makes(spec: str) -> None:
    [suite] = suites_of([SPECS / spec / "config.tests.yaml"])
    assert suite.tests is not None
    assert suite.config is not None
    assert suite.config.program is not None

    some = [each for each in suite.cases() if len(each.given) < MANY]
    verdicts = [
        run_case(suite.tests, each, suite.config.program, suite.config.base, lowering=counting)
        for each in some
    ]

    assert len(some) > 2
    assert [each.case.name for each in verdicts if not each.has_passed] == []


def test_what_is_told_depends_on_no_hash_seed() -> None:
    files = [
        "docs/testing/config.tests.yaml",
        "docs/testing/wrong.tests.yaml",
        "specs/hello",
        "specs/brokers",
    ]
    command = [COMMAND, "test", "--format", "json", *files]
    running = [
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment(), "PYTHONHASHSEED": str(seed)},
        )
        for seed in (0, 1, 2, 3)
    ]
    said = [process.communicate(timeout=60)[0] for process in running]
    without_times = {
        "\n".join(line for line in each.splitlines() if '"seconds":' not in line) for each in said
    }

    assert [process.returncode for process in running] == [1, 1, 1, 1]
    assert len(without_times) == 1
    assert '"differs"' in without_times.pop()
