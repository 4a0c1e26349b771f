"""`headrace check`: what is wrong with configs, without starting anything.

It imports the language alone: no server, no driver, no network.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from headrace.compiler.text.diagnostics import (
    Diagnostic,
    Severity,
    in_file_order,
    path_text,
    printable,
)
from headrace.compiler.text.render import Style, render
from headrace.web.commands.selection import STANDARD_INPUT, selected
from headrace.web.files.reading import Files, Loaded, catalogue, load, place

FINE, REFUSED, NOTHING = 0, 1, 5
"""Exit codes; 2 is a mistake on the command line."""


def check(
    configs: Sequence[Path],
    connections: Path | None = None,
    secrets: Path | None = None,
    settings: Path | None = None,
    *,
    data_dir: Path | None = None,
    is_json: bool = False,
    is_strict: bool = False,
    piped: Callable[[], bytes] = lambda: b"",
) -> int:
    """Print what is wrong with configs, what they name and server settings; return the exit code.

    Of a directory all configs in it are meant, and of ``-`` what is ``piped``, standard input.
    ``is_strict``: warnings refuse as well.

    Which connection each component uses is told beside the summary, on standard error: what is wrong
    stays alone on standard output.
    """
    known = catalogue()
    selection = selected(configs, [connections, secrets, settings])
    if not (selection.configs or settings):
        print("[]" if is_json else "no config there to check", file=None if is_json else sys.stderr)
        return NOTHING
    beside = Files(None, connections, secrets, settings)
    files = [
        replace(beside, piped=piped()) if each == STANDARD_INPUT else replace(beside, config=each)
        for each in selection.configs
    ] or [beside]
    results = [load(each, known, data_dir=data_dir) for each in files]
    # Configs may share a connections file, as they do settings; what is wrong with it is told once.
    told = dict.fromkeys(one for loaded in results for one in loaded.diagnostics)
    sources = {file: text for loaded in results for file, text in loaded.sources.items()}
    diagnostics = in_file_order(told)
    style = "json" if is_json else style_for(sys.stdout)
    if text := render(diagnostics, style=style, sources=sources):
        print(text, flush=True)
    if not is_json:
        lines = [line for loaded in results for line in _uses(loaded)]
        print(
            *lines,
            *(printable(f"no config in {each}") for each in selection.empty),
            _summary(len(selection.configs) + (settings is not None), diagnostics),
            sep="\n",
            file=sys.stderr,
        )
    is_refused = any(loaded.is_refused for loaded in results)
    return REFUSED if is_refused or (is_strict and diagnostics) else FINE


def style_for(stream: TextIO) -> Style:
    """Return how diagnostics are shown on a stream: at length to people, in lines to programs."""
    return "terminal" if stream.isatty() else "plain"


def _uses(loaded: Loaded) -> Iterator[str]:
    """Yield which connection each component uses and where that is filed, pipeline after pipeline.

    Of a config that is refused nothing is said: what it would use shows when it is mended.
    """
    if loaded.program is None or loaded.is_refused:
        return
    for config in sorted(loaded.program.pipelines, key=lambda each: each.site.at):
        file = None if config.site.document is None else config.site.document.file
        for path, kind, name in config.namings():
            at = place(file, config.site.inside(*path).position())
            component = path_text((*config.site.called, *path[:2]))
            used = f"{kind} connection '{name}' ({loaded.filed_at[name]})"
            yield printable(f"{at}: {component} uses {used}")


def _summary(files: int, diagnostics: Sequence[Diagnostic]) -> str:
    errors = sum(one.severity is Severity.ERROR for one in diagnostics)
    counts = [(files, "file"), (errors, "error"), (len(diagnostics) - errors, "warning")]
    checked, *found = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts]
    return f"{checked} checked: {', '.join(found)}"
