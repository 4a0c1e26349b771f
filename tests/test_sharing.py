"""No file is left out of the short tests and of the long ones as well."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.sharing import PERHAPS_LONG, WHOLLY_LONG

TESTS = Path(__file__).parent


def is_marked(source: str) -> bool:
    """Return whether a file says of all its tests, and not in a text of its own, which they are."""
    assigned = [each for each in ast.parse(source).body if isinstance(each, ast.Assign)]
    return any(
        isinstance(target, ast.Name) and target.id == "pytestmark"
        for each in assigned
        for target in each.targets
    )


def test_what_is_left_to_the_long_tests_is_among_them() -> None:
    files = [*TESTS.rglob("test_*.py"), *TESTS.parent.glob("specs/*/test_*.py")]
    left_out = {
        file: source
        for file in files
        if any(mark in (source := file.read_text()) for mark in WHOLLY_LONG)
    }

    assert len(left_out) > 10
    assert [file for file, source in left_out.items() if not is_marked(source)] == []


def test_no_file_is_left_out_of_the_long_tests_that_has_some() -> None:
    for file in (*TESTS.rglob("test_*.py"), *TESTS.parent.glob("specs/*/test_*.py")):
        source = file.read_text()
        if not any(each in source for each in PERHAPS_LONG):
            assert re.search(r"^\s*@(given|pytest.mark.long)|: Console\b", source, re.M) is None
