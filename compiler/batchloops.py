"""Functions over a batch whose source is generated: the hopeful lines first, then the careful ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.compiler.code import GLOBALS, INDENT, Code, compile_source
from headrace.compiler.delivery import Batch

_EACH = "each"


USUAL = "(KeyError, TypeError)"
"""What the hopeful lines raise where a field is missing, or is of another type."""


def loop_source(
    name: str, hopeful: Sequence[str], careful: Sequence[str], raised: str = USUAL
) -> str:
    """Return the source of the function that tries the hopeful lines first, unless something is raised."""
    body = list(careful)
    if body != list(hopeful):
        hope = [INDENT + line for line in hopeful]
        body = ["try:", *hope, f"except {raised}:", f"{INDENT}pass", *careful]
    return "\n".join([f"def {name}(batch):", *(INDENT + line for line in body), ""])


def of_each(write: Callable[[Code], str], place: str) -> Callable[[Batch], list[Any]]:
    """Return what makes something of each message of a batch: the expression that ``write`` returns.

    ``place`` names it in tracebacks: ``p1 outputs[0]``. The function raises whatever the expression does,
    and `GiveUp` where that was not written for a message: somebody has to say plainly what is wrong.
    """
    constants = dict(GLOBALS)
    sources = []
    for is_hopeful in (True, False):
        code = Code(constants, is_hopeful=is_hopeful)
        code.replace(write(code))
        sources.append(code.source())
    hopeful, careful = sources
    function: Callable[[Batch], list[Any]] = compile_source(
        _EACH, loop_source(_EACH, hopeful, careful), constants, place
    )
    return function
