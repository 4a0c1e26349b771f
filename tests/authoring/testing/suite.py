"""Files of tests in a folder, and what came of them."""

from __future__ import annotations

from pathlib import Path

from headrace.authoring.testing.outcomes import CaseOutcome
from headrace.authoring.testing.runs import RunOptions, run, suites_of

CONFIG = """\
- id: line
  inputs: [{type: http}]
  transforms:
    - {type: filter, Numeric: {field: temp, operator: greater_than, value: 80}}
    - {type: map, keep: mapped, mappings: [{type: copy, from: temp, as: high}]}
- id: held
  inputs: [{type: pipeline, upstream: line}]
  transforms: [{type: buffer, seconds: 60, max_messages: 10}]
  outputs: [{type: redis, connection: bus, channel: hot}]
"""
CONNECTIONS = "bus: {type: redis, url: 'redis://127.0.0.1:1'}\n"


def written(folder: Path, tests: str, config: str = CONFIG) -> Path:
    """Write a config with its tests; return the file of tests."""
    (folder / "config.yaml").write_text(config)
    (folder / "config.connections.yaml").write_text(CONNECTIONS)
    file = folder / "config.tests.yaml"
    file.write_text(tests)
    return file


def outcomes(file: Path, **options: object) -> list[CaseOutcome]:
    """Run what is in a file."""
    return [*run(suites_of([file]), RunOptions(**options))]


def only(folder: Path, case: str, **options: object) -> CaseOutcome:
    """Run one test, which is called `it`."""
    [outcome] = outcomes(written(folder, f"tests:\n  it:\n{case}\n"), **options)
    return outcome
