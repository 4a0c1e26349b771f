"""What a function refuses that a script calls, and what a script calls the values it hands over."""

from __future__ import annotations

from headrace.compiler.decimals import Written
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import HeadraceError


class CallRefused(HeadraceError):
    """A function cannot do what a script asks of it; the run fails where it was called."""


_KINDS = {
    type(None): "()",
    bool: "a bool",
    int: "an int",
    float: "a float",
    Written: "a float",
    str: "a string",
    list: "an array",
    dict: "a map",
}


def kind(value: JsonValue) -> str:
    """Return what a script calls such a value, with its article."""
    return _KINDS.get(type(value), "a value")
