"""The page about speed: which of the rows that were measured it shows, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.__main__ import SCENARIOS
from headrace.web.docs import speedpage

MEASURED = """# Measured

| scenario | measured | held against | figure | bar | |
| -------- | -------- | ------------ | ------ | --- | --- |
| map1 | 8.15 M msg/s | by hand: 6.77 M msg/s | 1.22 (1.19 to 1.28) | at least 0.85 | holds |
| kafka1 | 81.7 k msg/s | aiokafka: 110 k msg/s | 0.75 (0.69 to 0.78) | at least 0.4 | holds |
| kafka1 | 91.1 k msg/CPU s | the same: 114 k msg/CPU s | 0.80 (0.75 to 0.82) | - | |
| s3parts | 10 part/s | aioboto3: 12.2 part/s | 0.82 (0.81 to 0.85) | at least 0.9 | **short** |
"""


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, str]:
    """Return what is generated of a few rows."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / speedpage.MEASURED).write_text(MEASURED)
    return dict(speedpage.pages(tmp_path / "docs")["speed.md"])


def lines(part: str) -> list[str]:
    return part.splitlines()[2:]


def test_a_row_is_told_in_words_with_its_rate_and_ratio(parts: dict[str, str]) -> None:
    assert lines(parts["transforms"]) == [
        "| one `map` with one mapping that calculates | 8.15 M messages | 1.22 |"
    ]


def test_of_what_was_measured_on_the_clock_as_well_the_cpu_time_is_told(
    parts: dict[str, str],
) -> None:
    assert lines(parts["brokers"]) == [
        "| `kafka` to `kafka`, every message a batch | 91.1 k messages | 0.80 |"
    ]


def test_what_was_not_measured_is_left_out(parts: dict[str, str]) -> None:
    assert lines(parts["posts"]) == []


def test_what_falls_short_is_listed(parts: dict[str, str]) -> None:
    assert lines(parts["short"]) == [
        "| s3parts | 10 part/s | aioboto3: 12.2 part/s | 0.82 (0.81 to 0.85) | at least 0.9 |"
    ]


def test_every_row_that_has_words_is_measured() -> None:
    assert {*speedpage.POSTS, *speedpage.BROKERS, *speedpage.TRANSFORMS} <= {*SCENARIOS}
