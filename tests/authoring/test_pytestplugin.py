"""pytest collects files of tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.authoring.testing.suite import written

TESTS = """\
tests:
  a hot line: {given: {line: {1s: {temp: 90}}}, expect: {line: {1s: {high: 90}}}, tags: [slow]}
  a cold line: {given: {line: {1s: {temp: 20}}}, expect: {line: {1s: {high: 20}}}}
  a later line: {expect: {line: {}}, skip: not yet}
"""


def collected(folder: Path, *arguments: str) -> str:
    """Return what pytest of its own says of a folder."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "headrace.authoring.pytestplugin"]
    command += ["-p", "no:cacheprovider", "-rs", *arguments, str(folder)]
    told = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    return told.stdout + told.stderr


@pytest.mark.long
def test_each_test_is_an_item_at_its_line(tmp_path: Path):
    written(tmp_path, TESTS)

    told = collected(tmp_path)

    assert "1 failed, 1 passed, 1 skipped" in told
    assert '  - a       1s  never came: {"high": 20}' in told
    assert "config.tests.yaml: not yet" in told
    assert "Traceback" not in told


@pytest.mark.long
def test_a_process_that_is_killed_leaves_nothing_behind_that_pytest_warns_of(tmp_path: Path):
    config = """\
- id: line
  dead_letters: true
  inputs: [{type: http, durable: true}]
  transforms: [{type: buffer, seconds: 5, max_messages: 10}]
  outputs: [{type: redis, connection: bus, channel: hot, queue: {}}]
"""
    tests = """\
tests:
  it is killed as it stores, and with nobody there:
    given: {line: {1s: 1, 2s: 2, 30.5s: 3}}
    faults:
      connections.bus: {0s..20s: down}
      process: {3s: killed after commit 1, 30s..31s: killed}
    until: 1m
    expect:
      "line.outputs[0]": {21.8s: [1, 2], +0s: [1, 2]}
      failures: [{at: "line.outputs[0]", says: does not answer}]
      unanswered: {line: 1}
"""
    written(tmp_path, tests, config)

    told = collected(tmp_path, "-W", "error")

    assert "1 passed" in told
    assert "warning" not in told.lower()
    assert "Traceback" not in told


@pytest.mark.long
def test_tags_are_words_of_k(tmp_path: Path):
    written(tmp_path, TESTS)

    assert "1 passed, 2 deselected" in collected(tmp_path, "-k", "slow")


@pytest.mark.long
def test_a_file_that_is_refused_is_an_error_of_collection(tmp_path: Path):
    written(tmp_path, "tests: {it: {expect: {nowhere: {}}}}")

    told = collected(tmp_path)

    assert "there is no pipeline 'nowhere'" in told
    assert "1 error" in told
    assert "Traceback" not in told


def test_nothing_of_headrace_is_imported_before_there_is_such_a_file():
    script = (
        "import sys, headrace.authoring.pytestplugin;"
        "print(*(name for name in sys.modules if name.startswith('headrace.')))"
    )

    told = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )

    assert told.stdout.split() == ["headrace.authoring", "headrace.authoring.pytestplugin"]
