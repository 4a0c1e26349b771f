"""What docs/testing.md shows works as it stands there."""

from __future__ import annotations

import re

import pytest

from tests.authoring.testing.suite import outcomes
from tests.rooms import REPOSITORY

PAGE = (REPOSITORY / "docs" / "testing.md").read_text()
EXAMPLES = REPOSITORY / "docs" / "testing"


def test_the_python_of_the_page_runs(monkeypatch: pytest.MonkeyPatch):
    [script] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(EXAMPLES)
    names: dict[str, object] = {}

    exec(script, names)

    assert "came" in names


def test_the_tests_of_the_page_pass_and_the_wrong_ones_fail():
    right = outcomes(EXAMPLES / "config.tests.yaml")
    wrong = outcomes(EXAMPLES / "wrong.tests.yaml")

    assert {each.outcome for each in right} == {"passed"}
    assert {each.outcome for each in wrong} == {"failed"}
