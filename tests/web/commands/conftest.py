"""What the tests of commands ask for."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
