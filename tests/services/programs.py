"""Where the servers' programs are, and what happens to a test on a machine that lacks one."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

WANTED = re.compile(r"there is no '(?P<program>[^']+)' on this machine")
"""How the reason of a skip begins that `make services-install` mends."""


class Missing(pytest.skip.Exception):
    """A server cannot run on this machine; the text says what to install.

    To pytest that is a skip with a reason, and `tests/skipping.py` makes a failure of it in CI.
    """


def program(name: str, remedy: str) -> Path:
    """Return a program of this environment or of the system."""
    here = str(Path(sys.executable).parent)
    path = os.pathsep.join([here, os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        raise Missing(f"there is no '{name}' on this machine: {remedy}")
    return Path(found)
