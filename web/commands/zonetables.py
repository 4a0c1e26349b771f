"""Which tables of zones there are: those of the system, and where it has none those of a package.

Source: https://docs.python.org/3/library/zoneinfo.html#data-sources
"""

from __future__ import annotations

import re
import zoneinfo
from importlib.metadata import version
from pathlib import Path

_VERSION = re.compile(r"# version (\S+)\s*")


def tables() -> str:
    """Return which tables zones are looked up in, as words: ``2026a of /usr/share/zoneinfo``."""
    for folder in map(Path, zoneinfo.TZPATH):
        if folder.is_dir():
            return f"{_version(folder)} of {folder}"
    return f"{version('tzdata')} of the package tzdata"


def _version(folder: Path) -> str:
    """Return the version that tables of a system have, where they tell it."""
    try:
        with (folder / "tzdata.zi").open(encoding="ascii") as lines:
            told = _VERSION.fullmatch(lines.readline(100))
    except (OSError, ValueError):
        told = None
    return told[1] if told else "(of no known version)"
