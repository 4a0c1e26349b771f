"""Consoles of pages: the blocks of commands that somebody is to type, each with what it prints.

A page is read as a list of steps, from top to bottom. A command that starts a server begins a session: a
folder of its own, the files that the page shows up to there, and that server until the next one is started.
What it prints is put into the page where it is not what stands there; times, ids and the like, which no two
runs have in common, stay as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

_BLOCK = re.compile(
    r"^<!-- generated.*?^<!-- /generated -->$"
    r"|^<!-- run: (?P<hidden>.*?) -->$"
    r"|^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_PROMPT = "$ "
_FILE = re.compile(r"`([\w.-]+\.(?:json|yaml))`")
_FILE_ABOVE = re.compile(r"^(?:#|//) ([\w.-]+\.(?:json|yaml))\n")
_LOGGED = re.compile(r'\{"ts":|\d{4}-\d\d-\d\dT[\d:.]+\S* (?:INFO|WARNING|ERROR) ')
_SERVES = re.compile(r"(?:^|\s)(?:\S*/)?headrace serve\b|^make run\b")

_VOLATILE = [
    (
        re.compile(r"\b20[2-9]\d-\d\d-\d\d([T ])\d\d[:-]\d\d[:-]\d\d(?:\.\d+)?(Z|[+-]\d\d:\d\d)?"),
        "T",
    ),
    (re.compile(r'"(started_at|ts|seq|first_seen|last_seen)":\d+'), r'"\1":0'),
    (re.compile(r"(\$argon2id\$v=\d+\$m=\d+,t=\d+,p=\d+\$)\S+"), r"\1"),
]
"""What differs from run to run, and what stands for it in a comparison."""
_OF_NOW = re.compile(r'(\\?"(?:value|mean)\\?"):-?\d+\.\d{9,}')
"""Figures of the sine, which depend on when it began."""

Kind = Literal["file", "serve", "command", "hidden", "log"]


@dataclass
class ConsoleStep:
    """Something to do, or to wait for, in a page, and what is shown of it."""

    kind: Kind
    text: str
    """The command, or what a file holds."""
    shown: list[str] = field(default_factory=list)
    """What the page has it print, line by line; of `log`: what the server prints."""
    name: str = ""
    """Of a file."""
    span: tuple[int, int] = (0, 0)
    """Where the lines that are shown stand in the page."""


def steps_of(page: str) -> Iterator[ConsoleStep]:
    """Yield all that a page has somebody do."""
    for block in _BLOCK.finditer(page):
        if block["hidden"] is not None:
            command = block["hidden"].strip()
            yield ConsoleStep("serve" if is_server(command) else "hidden", command)
        elif block["language"] == "console":
            yield from _commands(block["text"], block.start("text"))
        elif block["language"] in ("json", "yaml"):
            if name := _file_name(page[: block.start()], block["text"]):
                yield ConsoleStep("file", block["text"], name=name)
        elif block["language"] == "" and _LOGGED.match(block["text"]):
            yield ConsoleStep("log", "", block["text"].splitlines(), span=block.span("text"))


def is_server(command: str) -> bool:
    """Return whether a command goes on until somebody ends it, and serves meanwhile."""
    return _SERVES.search(command) is not None


def has_consoles(page: str) -> bool:
    """Return whether anything of a page is to be run."""
    return any(each.kind in ("serve", "command") for each in steps_of(page))


def filled(page: str, printed: Sequence[tuple[ConsoleStep, Sequence[str]]]) -> str:
    """Return a page in which steps print what they have printed."""
    for step, lines in sorted(printed, key=lambda each: each[0].span, reverse=True):
        if step.kind != "hidden" and alike(step.shown) != alike(lines):
            start, end = step.span
            page = page[:start] + "".join(f"{line}\n" for line in lines) + page[end:]
    return page


def alike(lines: Sequence[str]) -> list[str]:
    """Return lines without what no two runs have in common."""
    return [settled(line) for line in "\n".join(lines).strip().split("\n")]


def settled(line: str) -> str:
    """Return one line so."""
    for pattern, instead in _VOLATILE:
        line = pattern.sub(instead, line)
    return _OF_NOW.sub(r"\1:0", line).rstrip()


def _commands(text: str, start: int) -> Iterator[ConsoleStep]:
    """Yield the commands of a block; backslashes have one go on on the next line."""
    step: ConsoleStep | None = None
    at, goes_on = start, False
    for line in text.splitlines(keepends=True):
        plain = line.rstrip("\n")
        if goes_on and step is not None:
            step.text += f"\n{plain}"
        elif plain.startswith(_PROMPT):
            if step is not None:
                yield step
            command = plain.removeprefix(_PROMPT)
            step = ConsoleStep("serve" if is_server(command) else "command", command)
        elif step is not None:
            step.shown.append(plain)
            step.span = step.span[0], at + len(line)
            at += len(line)
            continue
        goes_on = plain.endswith("\\")
        at += len(line)
        if step is not None:
            step.span = at, at
    if step is not None:
        yield step


def _file_name(before: str, text: str) -> str | None:
    """Return what a block is called as a file: in its first line, or last in the paragraph above it."""
    if (above := _FILE_ABOVE.match(text)) is not None:
        return above[1]
    paragraph = before.rstrip("\n").rpartition("\n\n")[2]
    names: list[str] = _FILE.findall(paragraph)
    return names[-1] if names and paragraph.rstrip().endswith((":", "`")) else None
