"""Which tables of zones there are."""

import re
import zoneinfo
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from headrace.web.commands.zonetables import tables


@pytest.fixture(autouse=True)
def searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Have the tables of the system in a folder of the test, behind one that is not there."""
    folder = tmp_path / "zoneinfo"
    monkeypatch.setattr(zoneinfo, "TZPATH", (str(tmp_path / "none"), str(folder)))
    return folder


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# version 2026a\n# more\n", "2026a"),
        ("R A 1916", "(of no known version)"),
        ("", "(of no known version)"),
        ("# version é", "(of no known version)"),
    ],
)
def test_those_of_the_system_come_first(searched: Path, text: str, told: str) -> None:
    searched.mkdir()
    (searched / "tzdata.zi").write_text(text, encoding="utf-8")

    assert tables() == f"{told} of {searched}"


def test_their_version_may_be_unknown(searched: Path) -> None:
    searched.mkdir()

    assert tables() == f"(of no known version) of {searched}"


def test_where_the_system_has_none_those_of_the_package_are_taken() -> None:
    try:
        packaged = version("tzdata")
    except PackageNotFoundError:
        pytest.skip("the package tzdata is not installed")

    assert tables() == f"{packaged} of the package tzdata"
    assert re.match(r"20\d\d\.", packaged)
