"""All that comes of the tests of specs when they are played, as text: whether it is as expected or not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from headrace.authoring.playing.player import play
from headrace.authoring.testing.running import scenario_of
from headrace.authoring.testing.runs import suites_of

MOST_STEPS = 5_000
SPECS = Path(__file__).parents[2] / "specs"


def told(file: Path) -> Iterator[str]:
    """Yield what comes of each test of a file, but for those that only count many messages."""
    [suite] = suites_of([file])
    assert suite.tests is not None
    assert suite.config is not None
    assert suite.config.program is not None
    yield f"--- {file.relative_to(SPECS.parent)}\n"
    for case in suite.cases():
        if len(case.given) <= MOST_STEPS:
            scenario = scenario_of(suite.tests, case)
            played = play(suite.config.program, scenario, base=suite.config.base)
            yield f"{case.name}\n"
            for name, what in vars(played).items():
                # In its order, which a hash seed could change.
                yield f"{name} {dict(what) if isinstance(what, dict) else what}\n"


if __name__ == "__main__":
    for each in sorted(SPECS.glob("*/config.tests.yaml")):
        if find_spec("rhai") or each.parent.name not in ("machines", "plant"):
            sys.stdout.writelines(told(each))
