"""This tree beside another commit of it: ``python -m bench.against COMMIT [SCENARIO...]``.

The commit is built in a directory of its own, with the packages that it pins. Both sides run the same
scenario turn and turn about, each with its own `bench/`; what is compared is what they measure, not
what each has against its own limit. A bar of nearly 1 is held by the lower end of a 95 % interval.

Processes of the same tree differ by two or three percent for as long as they live, by where things lie in
their memory: so there are several of each, and what counts is the middle of what two of them have against
each other.

A scenario that the commit does not have yet is run from here for both, if what it measures is a server: its
installed command takes the place of ours.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.__main__ import SCENARIOS
from bench.table import Row, markdown, rate

REPOSITORY = Path(__file__).parents[1]
USUAL = ("batch1", "batch100", "depth3", "pipelines1000", "watched", "chain")
"""What is compared where nothing is named: the passes that nothing may make slower."""
PROCESSES = 12
PAIRS = 3
"""Samples of two processes beside each other."""
SECONDS = 0.2
LEAST = 0.95
Z = 1.96
"""Standard errors on either side of a middle that hold it in 95 of 100 cases."""


def has(tree: Path, scenario: str) -> bool:
    """Return whether a tree has a scenario.

    Raises:
        ValueError: it has not, and nobody else can run it there: it measures no server.
    """
    if f'"{scenario}":' in (tree / "bench" / "__main__.py").read_text():
        return True
    if "servers.headrace(" not in inspect.getsource(sys.modules[SCENARIOS[scenario][0].__module__]):
        raise ValueError(f"that commit has no '{scenario}', which runs inside one process")
    return False


class Side:
    """A tree and the process that measures it."""

    def __init__(self, tree: Path, scenario: str) -> None:
        self._scenario = scenario
        if has(tree, scenario):
            home, command = tree, []
            rooms = {"PYTHONPATH": str(tree / "build" / "rooms")}
        else:  # what is served has the rooms that are installed with its command
            home, command, rooms = REPOSITORY, [tree / ".venv" / "bin" / "headrace"], {}
        inherited = {name: each for name, each in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [home / ".venv" / "bin" / "python", REPOSITORY / "bench" / "side.py", *command],
            cwd=home,
            env=inherited | rooms,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def measure(self, seconds: float) -> dict[tuple[str, int], tuple[float, str]]:
        """Run the scenario once; return rate and unit of each of its rows."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"scenario": self._scenario, "seconds": seconds}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"'{self._scenario}' broke off, with code {self._process.wait()}")
        return {(name, number): (found, unit) for name, number, found, unit in json.loads(answer)}

    def end(self) -> None:
        """Have it measure no more."""
        self._process.communicate()


@dataclass(frozen=True, slots=True)
class Ratios:
    """How fast one side was, as a share of the other, in each two processes."""

    each: Sequence[float]

    def interval(self) -> tuple[float, float]:
        """Return between what the middle one lies in 95 of 100 cases.

        Source: order statistics, Conover, Practical Nonparametric Statistics, 3.2; nothing is assumed of
        how they are distributed.
        """
        ordered, half = sorted(self.each), Z * math.sqrt(len(self.each)) / 2
        lower = max(math.floor(len(ordered) / 2 - half), 0)
        return ordered[lower], ordered[len(ordered) - 1 - lower]

    def row(self, scenario: str, ours: str, theirs: str, least: float) -> Row:
        """Return them as a row: it holds if all of the interval does, and is short if none of it does."""
        low, high = self.interval()
        holds = True if low >= least else False if high < least else None
        middle = median(self.each)
        figure = f"{middle:.3f} ({low:.3f} to {high:.3f})"
        return Row(scenario, ours, theirs, figure, f"at least {least:g}", holds, middle)


@contextmanager
def built(commit: str) -> Iterator[Path]:
    """Give the tree of a commit, installed; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(REPOSITORY), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            subprocess.run(
                ["make", "--silent", ".venv/.tests", "build/rooms"], cwd=tree, check=True
            )
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def compare(ours: Path, theirs: Path, scenario: str, effort: tuple[int, int, float]) -> list[Row]:
    """Return the rows that both trees have of a scenario.

    ``effort`` is how many processes of each, how many samples of each of those, and the seconds of one.
    """
    processes, pairs, seconds = effort
    found = [_beside(ours, theirs, scenario, pairs, seconds) for _ in range(processes)]
    rows = []
    for key in found[0]:
        ratios = Ratios([median(own / other for own, other, _ in each[key]) for each in found])
        every = [sample for each in found for sample in each[key]]
        unit = every[0][2]
        told = [f"{rate(median(sample[side] for sample in every))} {unit}" for side in (0, 1)]
        rows.append(ratios.row(key[0], *told, LEAST))
    return rows


def _beside(
    ours: Path, theirs: Path, scenario: str, pairs: int, seconds: float
) -> dict[tuple[str, int], list[tuple[float, float, str]]]:
    """Return what a process of each tree measures of each row that both have, with its unit."""
    with ExitStack() as ending:
        sides = []
        for tree in (ours, theirs):
            sides.append(Side(tree, scenario))
            ending.callback(sides[-1].end)
        found = []
        for number in range(pairs + 1):
            turn = sides if number % 2 else sides[::-1]
            measured = {side: side.measure(seconds) for side in turn}
            found.append([measured[side] for side in sides])
    return {
        key: [(own[key][0], other[key][0], own[key][1]) for own, other in found[1:]]
        for key in found[0][0]
        if key in found[0][1]
    }


def main() -> None:
    """Build a commit, run scenarios in both trees, and print what this one has of the other's speed."""
    parser = argparse.ArgumentParser("bench.against", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", default=list(USUAL))
    parser.add_argument("--processes", type=int, default=PROCESSES, help="of each tree")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of samples, of two processes")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of CPU, for a sample")
    given = parser.parse_intermixed_args()
    rows: list[Row] = []
    effort = (given.processes, given.pairs, given.seconds)
    with built(given.commit) as tree:
        for scenario in given.scenarios:
            for row in compare(REPOSITORY, tree, scenario, effort):
                print(row.scenario, row.figure, row.verdict, sep="\t", flush=True)
                rows.append(row)
    print(f"\n{markdown(rows)}")


if __name__ == "__main__":
    main()
