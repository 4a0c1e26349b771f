"""`headrace check`: what is wrong with configs, without starting anything.

It imports the language alone: no server, no driver, no network.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from headrace.authoring.configfiles import catalogue, place
from headrace.compiler.text.counting import counted
from headrace.compiler.text.diagnostics import (
    Diagnostic,
    Severity,
    in_file_order,
    path_text,
    printable,
)
from headrace.compiler.text.render import Style, render, style_for
from headrace.web.commands.exitcodes import FINE, NOTHING, REFUSED
from headrace.web.commands.printing import print_json_text, print_text
from headrace.web.files.reading import Files, Loaded, load

STANDARD_INPUT = Path("-")
CONFIGS = (".yaml", ".yml", ".json")
"""How the names of configs end, where a directory is looked through."""
COMPANIONS = ("connections", "layout", "secrets", "server", "settings", "tests")
"""What a name ends in, before that, if the file stands beside configs and is none: ``a.layout.json``."""


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
    meant, without = selected(configs, [connections, secrets, settings])
    if not (meant or settings):
        print("[]" if is_json else "no config there to check", file=None if is_json else sys.stderr)
        return NOTHING
    beside = Files(None, connections, secrets, settings)
    files = [
        replace(beside, piped=piped()) if each == STANDARD_INPUT else replace(beside, config=each)
        for each in meant
    ] or [beside]
    results = [load(each, known, data_dir=data_dir) for each in files]
    # Configs may share a connections file, as they do settings; what is wrong with it is told once.
    told = dict.fromkeys(one for loaded in results for one in loaded.diagnostics)
    sources = {file: text for loaded in results for file, text in loaded.sources.items()}
    diagnostics = in_file_order(told)
    style: Style = "json" if is_json else style_for(sys.stdout)
    if text := render(diagnostics, style=style, sources=sources):
        show = print_json_text if is_json else print_text
        show(text)
    if not is_json:
        print(
            *(line for loaded in results for line in _uses(loaded)),
            *(printable(f"no config in {each}") for each in without),
            _summary(len(meant) + (settings is not None), diagnostics),
            sep="\n",
            file=sys.stderr,
        )
    is_refused = any(loaded.is_refused for loaded in results)
    return REFUSED if is_refused or (is_strict and diagnostics) else FINE


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
    checked, *found = [counted(*each) for each in counts]
    return f"{checked} checked: {', '.join(found)}"


def selected(
    named: Iterable[Path], apart: Collection[Path | None] = ()
) -> tuple[Collection[Path], Collection[Path]]:
    """Return the configs that are meant, each once, and the directories in which there was none.

    Those are the files that are named, and those in the directories that are. A directory is not
    looked through deeper: what is below it may be parts that an output writes. ``apart`` are files that
    are named for another purpose.
    """
    configs, empty = dict[Path, None](), dict[Path, None]()
    others = {os.path.realpath(file) for file in apart if file is not None}
    for path in named:
        if path == STANDARD_INPUT or not os.path.isdir(path):  # a name that is too long is none
            configs[path] = None
            continue
        found = [file for file in _within(path) if os.path.realpath(file) not in others]
        configs |= dict.fromkeys(found)
        if not found:
            empty[path] = None
    return configs.keys(), empty.keys()


def _within(directory: Path) -> Iterator[Path]:
    """Yield the configs in a directory, by name; it itself if it cannot be listed, for others to tell."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        yield directory
        return
    for file in map(directory.joinpath, names):
        is_hidden = file.name.startswith(".")
        is_companion = file.stem.rpartition(".")[2].lower() in COMPANIONS
        if file.suffix.lower() in CONFIGS and not (is_hidden or is_companion or file.is_dir()):
            yield file
