"""What the verbs that run the tests select, and when they fail."""

from __future__ import annotations

import re
import subprocess
from itertools import product
from pathlib import Path

import pytest

from tests.rooms import REPOSITORY
from tests.sharing import ALONE, LONG, SHORT, SHORT_ALONE

STAND_IN = """#!/bin/sh
case "$*" in
    *--last-failed*) echo again; exit {again};;
    *"-n 0") echo alone; exit {alone};;
    *) echo beside; exit {beside};;
esac
"""


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a verb without what it installs and builds before."""
    command = ["make", "-o", ".venv/.tests", "-o", "console", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_each_test_is_in_one_half_of_its_verb() -> None:
    selected = re.findall(r'-m "([^"]+)"', make("-n", "test", "test-all").stdout)
    short, short_alone, full, full_alone = selected

    assert (short, full, short_alone, full_alone) == (SHORT, LONG, *ALONE)
    assert short_alone == SHORT_ALONE
    for long, timed, hypothesis in product([False, True], repeat=3):
        marks = {"long": long, "timed": timed, "hypothesis": hypothesis}
        is_in = [eval(each, {}, marks) for each in selected]
        assert is_in[:2] == [not long and not timed, not long and timed]
        assert is_in[2:] == [
            (long or hypothesis) and not timed,
            (long or hypothesis) and timed,
        ]


@pytest.mark.parametrize("verb", ["test", "test-all"])
@pytest.mark.parametrize(
    ("beside", "alone", "passes"),
    [(0, 0, True), (5, 0, True), (0, 5, True), (5, 5, False), (1, 0, False), (0, 1, False)],
)
def test_both_halves_run_and_either_fails_the_verb(
    verb: str, beside: int, alone: int, passes: bool, tmp_path: Path
) -> None:
    """5 is what pytest says where nothing was selected."""
    said, passed = ran(tmp_path, verb, "false", beside=beside, alone=alone)

    assert said == ["beside", "alone"]
    assert passed is passes


@pytest.mark.parametrize(
    ("ends", "ran_them"),
    [
        ({"beside": 1}, ["beside", "again", "alone"]),
        ({"alone": 1}, ["beside", "alone", "again"]),
        ({"beside": 1, "alone": 1}, ["beside", "again", "alone", "again"]),
    ],
)
@pytest.mark.parametrize(("again", "passes"), [(0, True), (1, False), (5, False)])
def test_the_few_of_a_half_that_fail_have_to_pass_alone(
    ends: dict[str, int], ran_them: list[str], again: int, passes: bool, tmp_path: Path
) -> None:
    said, passed = ran(tmp_path, "test", "true", again=again, **ends)

    assert said == ran_them
    assert passed is passes


def ran(folder: Path, verb: str, few: str, **ends: int) -> tuple[list[str], bool]:
    """Return which parts of a verb ran, and whether it passed; ``few`` tells whether few tests failed."""
    stand_in = folder / "pytest"
    stand_in.write_text(STAND_IN.format(**{"beside": 0, "again": 0, "alone": 0} | ends))
    stand_in.chmod(0o755)
    made = make("-s", verb, f"RUN_TESTS={stand_in}", f"FEW_FAILED={few}")
    said = [line for line in made.stdout.splitlines() if not line.startswith("make")]
    return said, made.returncode == 0
