"""`headrace check`: what is wrong with configs, without starting anything.

It imports the language alone: no server, no driver, no network.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from headrace.compiler.language.diagnostics import Diagnostic, Severity, in_file_order
from headrace.compiler.language.render import Style, render
from headrace.web.reading import Files, catalogue, load


def check(
    configs: Sequence[Path],
    connections: Path | None = None,
    secrets: Path | None = None,
    *,
    is_json: bool = False,
) -> int:
    """Print what is wrong with the configs and what they name; return the exit code."""
    known = catalogue()
    results = [load(Files(config, connections, secrets), known) for config in configs]
    # Configs may share a connections file, and what is wrong with it is told once.
    told = dict.fromkeys(one for loaded in results for one in loaded.diagnostics)
    sources = {file: text for loaded in results for file, text in loaded.sources.items()}
    diagnostics = in_file_order(told)
    style = "json" if is_json else style_for(sys.stdout)
    if text := render(diagnostics, style=style, sources=sources):
        print(text, flush=True)
    if not is_json:
        print(_summary(len(configs), diagnostics), file=sys.stderr)
    return 1 if any(loaded.is_refused for loaded in results) else 0


def style_for(stream: TextIO) -> Style:
    """Return how diagnostics are shown on a stream: at length to people, in lines to programs."""
    return "terminal" if stream.isatty() else "plain"


def _summary(files: int, diagnostics: Sequence[Diagnostic]) -> str:
    errors = sum(one.severity is Severity.ERROR for one in diagnostics)
    counts = [(files, "file"), (errors, "error"), (len(diagnostics) - errors, "warning")]
    checked, *found = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts]
    return f"{checked} checked: {', '.join(found)}"
