"""Diagnostics as text: for a terminal, for a pipe and for another program."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TextIO

from headrace.compiler.text.diagnostics import Diagnostic, Severity, printable
from headrace.compiler.text.positions import lines_of

if TYPE_CHECKING:
    from rich.text import Text

Style = Literal["terminal", "plain", "json"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_BEFORE, _AFTER = 60, 40
"""How much of a long source line is shown before and after the place in question."""


def style_for(stream: TextIO) -> Style:
    """Return how diagnostics are shown on a stream: at length to people, in lines to programs."""
    return "terminal" if stream.isatty() else "plain"


def render(
    diagnostics: Iterable[Diagnostic],
    *,
    style: Style,
    sources: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the diagnostics as one text without a line break at its end.

    ``plain``: a line for each, ``file:line:column: path: message``, without what is unknown; the
    message of a warning starts with the word, and what would do follows in brackets. ``json``: one
    array of objects. ``terminal``: a coloured block for each, with the line of the file where
    ``sources``, or the diagnostic itself, has its text.
    """
    if style == "json":
        objects = [diagnostic.as_json() for diagnostic in diagnostics]
        text = json.dumps(objects, ensure_ascii=False, indent=2)
        # A file name may contain bytes that are no characters; JSON has an escape for those.
        return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
    return "\n".join(map(_line, diagnostics)) if style == "plain" else _blocks(diagnostics, sources)


def _line(diagnostic: Diagnostic) -> str:
    remark = "warning: " if diagnostic.severity is Severity.WARNING else ""
    parts = [_where(diagnostic), diagnostic.path, remark + diagnostic.message]
    hint, expected = diagnostic.suggestion, diagnostic.expected or ""
    # What would be accepted, where that is a list of names the message does not give.
    if not hint and expected.startswith("one of ") and expected not in diagnostic.message:
        hint = f"expected {expected}"
    said = ": ".join(part for part in parts if part)
    return printable(f"{said} ({hint})" if hint else said)


def _where(diagnostic: Diagnostic) -> str:
    parts = (diagnostic.file, diagnostic.line, diagnostic.column)
    return ":".join(str(part) for part in parts if part is not None)


def _blocks(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> str:
    # Loading it takes longer than checking a config, and only a terminal needs it.
    from rich.console import Console
    from rich.text import Text

    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    lines = {file: lines_of(text) for file, text in sources.items()}
    blocks = [
        Text("\n").join(_block(diagnostic, _lines_for(diagnostic, lines)))
        for diagnostic in diagnostics
    ]
    with console.capture() as capture:
        console.print(Text("\n\n").join(blocks), soft_wrap=True, highlight=False, end="")
    return capture.get()


def _lines_for(diagnostic: Diagnostic, known: Mapping[str, list[str]]) -> list[str]:
    """Return the lines of the file that a diagnostic is about, as far as anybody has its text."""
    if diagnostic.text is not None:
        return lines_of(diagnostic.text) if diagnostic.text else []
    return known.get(diagnostic.file or "", [])


def _block(diagnostic: Diagnostic, lines: list[str]) -> Iterator[Text]:
    from rich.text import Text

    colour = "yellow" if diagnostic.severity is Severity.WARNING else "red"
    yield Text.assemble(
        (f"{diagnostic.severity}[{diagnostic.code}]", f"bold {colour}"),
        (f": {printable(diagnostic.message)}", "bold"),
    )
    place = "  ".join(part for part in (_where(diagnostic), diagnostic.path) if part)
    if place:
        yield Text.assemble(("  --> ", "blue"), printable(place))
    yield from _excerpt(diagnostic, lines, colour)
    for label, said in (("found: ", diagnostic.found), ("expected: ", diagnostic.expected)):
        if said is not None:
            yield Text.assemble(("   = ", "blue"), f"{label}{printable(said)}")
    if diagnostic.suggestion is not None:
        yield Text.assemble(("   = ", "blue"), (printable(diagnostic.suggestion), "green"))


def _excerpt(diagnostic: Diagnostic, lines: list[str], colour: str) -> Iterator[Text]:
    """The line of the file, and a caret below the place."""
    from rich.cells import cell_len
    from rich.text import Text

    if diagnostic.line is None or diagnostic.column is None or diagnostic.line > len(lines):
        return
    line, place = lines[diagnostic.line - 1], diagnostic.column - 1
    before, after = _single_cells(line[:place]), _single_cells(line[place:])
    if len(before) > _BEFORE:
        before = f"...{before[-_BEFORE:]}"
    if len(after) > _AFTER:
        after = f"{after[:_AFTER]}..."
    number = f"{diagnostic.line:>4}"
    yield Text.assemble((f"{number} | ", "blue"), before, after)
    yield Text.assemble(
        (f"{'':{len(number)}} | ", "blue"), " " * cell_len(before), ("^", f"bold {colour}")
    )


def _single_cells(text: str) -> str:
    """Replace tabs and what does not print, so that the caret stands below its character."""
    return "".join(c if c.isprintable() else " " for c in text)
