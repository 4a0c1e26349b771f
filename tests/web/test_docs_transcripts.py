"""What a page shows of a command is the same on each machine."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from headrace.web.docs import transcripts

EXAMPLE = Path(__file__).parent.parent.parent / "docs" / "testing"


def test_how_long_a_test_took_does_not_change_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    usual = transcripts.transcript_of_tests(Path("config.tests.yaml"))
    for module in ("headrace.authoring.testing.running", "headrace.web.commands.testing"):
        monkeypatch.setattr(f"{module}.stopwatch", itertools.count(0, 12.3).__next__)

    assert transcripts.transcript_of_tests(Path("config.tests.yaml")) == usual
    assert " in 5 ms\n" in usual
