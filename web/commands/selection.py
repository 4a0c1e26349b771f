"""Which configs a command line means: files, directories of them, and what comes from standard input."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

STANDARD_INPUT = Path("-")

CONFIGS = (".yaml", ".yml", ".json")
"""How the names of configs end, where a directory is looked through."""

COMPANIONS = ("connections", "layout", "secrets", "server", "settings")
"""What a name ends in, before that, if the file stands beside configs and is none: ``a.layout.json``."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The configs that are meant, and the directories in which there was none."""

    configs: tuple[Path, ...]
    empty: tuple[Path, ...] = ()


def selected(named: Iterable[Path], apart: Collection[Path | None] = ()) -> Selection:
    """Return the files that are named, and those in the directories that are, each once.

    A directory is not looked through deeper: what is below it may be parts that an output writes.
    ``apart`` are files that are named for another purpose.
    """
    configs: list[Path] = []
    empty: list[Path] = []
    others = {os.path.realpath(file) for file in apart if file is not None}
    for path in named:
        if path == STANDARD_INPUT or not os.path.isdir(path):  # a name that is too long is none
            configs.append(path)
            continue
        found = [file for file in _within(path) if os.path.realpath(file) not in others]
        configs += found
        empty += [] if found else [path]
    return Selection(tuple(dict.fromkeys(configs)), tuple(dict.fromkeys(empty)))


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
