"""The page of recipes as tests read it: the files of each answer, and what is shown to come out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text()
CONFIG, CONNECTIONS, TESTS = "config.yaml", "config.connections.yaml", "config.tests.yaml"


@dataclass
class Shown:
    """What is shown of one pipeline: what comes in and what comes out."""

    came: list[Any] = field(default_factory=list)
    left: list[Any] = field(default_factory=list)


@dataclass
class Recipe:
    """One answer of the page: a text by file, what is shown of pipelines, and commands for a shell."""

    files: dict[str, str]
    shown: dict[str, Shown]
    commands: list[str]

    def file(self, folder: Path) -> Path:
        """Write its files into a folder, and return the config."""
        for name, text in self.files.items():
            (folder / name).write_text(text)
        return folder / CONFIG


def values(text: str) -> list[Any]:
    """Return the JSON values that stand beside each other in a line."""
    found, decoder = [], json.JSONDecoder()
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def recipe(section: str) -> Recipe:
    """Return what a section of the page has in its blocks."""
    files, shown, commands = {}, {}, []
    for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE):
        if language == "yaml":
            name = re.match(r"# (\S+)\n", text)
            files[name[1] if name else CONFIG] = text
        elif not language:
            for line in text.splitlines():
                pipeline, sign, told = line.split(" ", 2)
                each = shown.setdefault(pipeline, Shown())
                (each.came if sign == "<" else each.left).extend(values(told))
        elif language == "sh":
            commands.extend(text.splitlines())
    return Recipe(files, shown, commands)


RECIPES = {
    title: recipe(section)
    for title, section in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}
"""All of them, by their titles."""
