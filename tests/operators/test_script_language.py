"""The list of the language's own functions is that of the engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rhai

from headrace.operators.script.names import FUNCTIONS, KEYWORDS, LENT, VERSION

NATIVES = Path(__file__).parent.parent.parent / "rhai-python" / "src" / "natives"
OTHERS = [
    "",
    "1",
    "1, 1",
    "1.5",
    "1.5, 1.5",
    "'a'",
    '"1"',
    '"1", "1"',
    "[1]",
    "#{}",
    "0..1",
    "|x| x",
]
"""Arguments to try: every function takes some of these, or one more of what it changes."""
MORE = ["", ", 1", ', "1"', ", |x| x", ", 0..1", ", [1]", ", #{}", ", 1, 1", ", [1], |a, b| a"]
MORE += [', "1", "1"', ", 1, true", ", 1, 1, 1", ", 0, 1, [1]", ', 1, "1"', ", |x, y| x, 1"]


def is_there(name: str) -> bool:
    """Return whether the engine has a function of that name, whatever becomes of the call."""
    return any(not is_refused(name, first + more) for first in OTHERS for more in MORE)


def is_refused(name: str, arguments: str) -> bool:
    """Return whether the engine knows no such function for such arguments."""
    try:
        rhai.Script(f"let a = {name}({arguments.removeprefix(', ')});").run(None)
    except rhai.CompileError:
        return True
    except rhai.RunError as error:
        return error.message.startswith(f"Function not found: {name} (")
    return False


@pytest.mark.parametrize("name", sorted(FUNCTIONS - KEYWORDS))
def test_the_engine_has_every_function_of_the_list(name: str) -> None:
    assert is_there(name)


@pytest.mark.parametrize("name", ["sha256", "sleep", "timestamp", "tag", "set_tag", "blob"])
def test_what_is_not_in_the_list_is_not_there(name: str) -> None:
    assert name not in FUNCTIONS | LENT.keys()
    assert not is_there(name)


def test_the_list_is_of_the_version_that_is_installed() -> None:
    assert rhai.RHAI_VERSION == VERSION


def test_what_our_part_of_the_engine_registers_is_in_the_list() -> None:
    text = "".join(each.read_text() for each in sorted(NATIVES.glob("*.rs")))

    registered = {*re.findall(r'\b(?:reader|changer)\(\s*"([A-Za-z_]\w*)"', text)}

    assert {"emit", "exit", "take", "dedup"} <= registered
    assert registered <= FUNCTIONS | LENT.keys()
