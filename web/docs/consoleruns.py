"""Sessions of pages: their commands run, in folders of their own, with real servers on free ports."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Condition, Event, Thread
from typing import IO

from headrace.web.docs.consoles import (
    ConsoleStep,
    alike,
    filled,
    has_consoles,
    is_server,
    settled,
    steps_of,
)

ADDRESS, FOLDER = "127.0.0.1:6767", "/srv/plant"
"""Where the pages have the server, and its files."""
PATIENCE = 30.0
"""Seconds until something counts as not coming."""
TRIES, PAUSE = 100, 0.1
"""How often somebody looks again who looks for what comes soon, and seconds in between."""
SERVERS_AT_ONCE = 8
_ANNOUNCED = re.compile(r"headrace runs .* at http://(127\.0\.0\.1:\d+)")
_LOOKS = re.compile(r"(?:cat|head|wc|ls)\b|curl (?!.*(?: -d| -X| -c| --data))", re.DOTALL)
"""Commands that change nothing, and may be asked again."""
_GOES_ON = re.compile(r"curl (?:\S+ )*-\w*N")
"""A command that ends only when somebody ends it."""
_FILES = ("specs", "docs/getting-started")
"""What is there of a checkout, beside what a page has somebody write."""


class NotAsShown(Exception):
    """A command of a page cannot be run; its text says which, and why."""


def out_of_date(root: Path, written: Mapping[Path, str]) -> Iterator[tuple[Path, str]]:
    """Yield the pages below a checkout whose consoles print something else, each with how it should read.

    ``written`` are pages that are about to be written.
    """
    pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("specs/*/README.md")]
    texts = {page: written.get(page) or page.read_text() for page in sorted(pages) if page.exists()}
    with ThreadPoolExecutor(SERVERS_AT_ONCE) as pool:
        runs = [
            (page, [pool.submit(_performed, root, each) for each in sessions(steps_of(text))])
            for page, text in texts.items()
            if has_consoles(text)
        ]
        for page, parts in runs:
            try:
                printed = [one for part in parts for one in part.result()]
            except NotAsShown as cause:
                raise NotAsShown(f"{page.relative_to(root)}: {cause}") from cause
            if (now := filled(texts[page], printed)) != texts[page]:
                yield page, now


def sessions(steps: Iterator[ConsoleStep]) -> list[list[ConsoleStep]]:
    """Return the steps of each session: all files up to its beginning, and what is done in it.

    A file that the page shows only later is there from the beginning.
    """
    steps_there = [*steps]
    files = [step for step in reversed(steps_there) if step.kind == "file"]
    found = [[*files]]
    for step in steps_there:
        if step.kind == "serve":
            found.append([*files])
        if step.kind == "file":
            files.append(step)
        found[-1].append(step)
    return [each for each in found if any(step.kind in ("serve", "command") for step in each)]


def _performed(root: Path, steps: Sequence[ConsoleStep]) -> list[tuple[ConsoleStep, Sequence[str]]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory())).resolve() / "plant"
        session = _Session(root, folder)
        stack.callback(session.close)
        return [
            (step, session.done(step))
            for step in steps
            if step.kind != "file" or session.file(step)
        ]


class _Session:
    """A folder, what is set in the environment, and a server, if there is one."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._folder = root, folder
        for each in _FILES:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / each, folder / each, ignore=ignored)
        (folder / ".venv").symlink_to(sys.prefix)
        self._set = ['curl() { command curl -s --max-time 60 "$@"; }']
        self._server: _Lines | None = None
        self._here = ADDRESS

    def file(self, step: ConsoleStep) -> bool:
        """Write a file that the page shows; nothing is printed."""
        (self._folder / step.name).write_text(step.text)
        return False

    def done(self, step: ConsoleStep) -> Sequence[str]:
        """Do a step, and return what it prints."""
        if step.kind == "serve":
            return self._serve(step)
        if step.kind == "log":
            return step.shown if self._server is None else self._server.logged(step.shown)
        if step.text.startswith("export "):
            self._set.append(step.text)
        if _GOES_ON.match(step.text):
            with _Lines(self._started(step.text), self._told) as lines:
                return lines.seen(step.shown)
        lines_now = self._run(step.text)
        tries = TRIES if _LOOKS.match(step.text) else 0
        while alike(lines_now) != alike(step.shown) and tries:
            Event().wait(PAUSE)
            lines_now, tries = self._run(step.text), tries - 1
        return lines_now

    def close(self) -> None:
        """End what runs."""
        if self._server is not None:
            self._server.close()

    def _serve(self, step: ConsoleStep) -> Sequence[str]:
        self.close()
        command = f"exec env {self._meant(step.text)} --listen 127.0.0.1:0"
        self._server = _Lines(self._started(command), self._told)
        self._here = self._server.find(_ANNOUNCED)
        return self._server.seen(step.shown)

    def _run(self, command: str) -> list[str]:
        ended = subprocess.run(
            self._shell(self._meant(command)),
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=4 * PATIENCE,
            check=False,
        )
        if ended.returncode == 127:
            raise NotAsShown(f"'{command}': {ended.stdout.strip()}")
        return [self._told(line) for line in ended.stdout.splitlines()]

    def _started(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._shell(command),
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _shell(self, command: str) -> list[str]:
        lines = "\n".join([*self._set, command])
        return ["bash", "-c", lines.replace(ADDRESS, self._here)]

    def _environment(self) -> dict[str, str]:
        """Return an environment in which the command is found, and nothing is set for it."""
        kept = {key: each for key, each in os.environ.items() if not key.startswith("HEADRACE_")}
        here = Path(sys.executable).parent
        return {**kept, "PATH": f"{here}{os.pathsep}{kept.get('PATH', '')}"}

    def _meant(self, command: str) -> str:
        """Return what a command comes to: of a verb of `make`, the last line that it would run."""
        if not command.startswith("make "):
            return command
        told = subprocess.run(
            ["make", "-C", self._root, "--no-print-directory", "--dry-run", *command.split()[1:]],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        last = told.stdout.splitlines()[-1].removeprefix("exec ").rstrip()
        return last if is_server(last) else f"{last} http://{ADDRESS}"

    def _told(self, line: str) -> str:
        return line.replace(self._here, ADDRESS).replace(str(self._folder), FOLDER)


class _Lines:
    """What a process prints that goes on, as it comes, until this is closed."""

    def __init__(self, process: subprocess.Popen[str], told: Callable[[str], str]) -> None:
        assert process.stdout is not None
        self._process, self._told = process, told
        self._news = Condition()
        self._lines = list[str]()
        self._is_over = False
        self._reader = Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def find(self, pattern: re.Pattern[str]) -> str:
        """Return the first group of the first line that has a pattern."""
        with self._news:
            self._news.wait_for(lambda: self._is_over or self._first(pattern), PATIENCE)
            if (found := self._first(pattern)) is None:
                raise NotAsShown(f"there is no '{pattern.pattern}' in: {' '.join(self._lines)}")
            return found

    def _first(self, pattern: re.Pattern[str]) -> str | None:
        return next((found[1] for line in self._lines if (found := pattern.search(line))), None)

    def seen(self, shown: Sequence[str]) -> Sequence[str]:
        """Return what is shown as soon as it has come, in its order; if it does not, what comes."""
        with self._news:
            is_there = self._news.wait_for(lambda: self._has(shown) or self._is_over, PATIENCE)
            if is_there and self._has(shown):
                return shown
            return [self._told(line) for line in self._lines[: len(shown)]]

    def _has(self, shown: Sequence[str]) -> bool:
        """Return whether all lines have come, others between them or not."""
        coming = iter(self._settled())
        return all(settled(line) in coming for line in shown)

    def logged(self, shown: Sequence[str]) -> Sequence[str]:
        """Return what is shown as soon as it has come, in whichever order; else what came last.

        What is written and what is logged goes different ways, and nobody promises which is first.
        """
        wanted = {settled(line) for line in shown}
        with self._news:
            self._news.wait_for(lambda: wanted <= {*self._settled()} or self._is_over, PATIENCE)
            if wanted <= {*self._settled()}:
                return shown
            return [self._told(line) for line in self._lines[-len(shown) :]]

    def _settled(self) -> list[str]:
        return [settled(self._told(line)) for line in self._lines]

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self._news:
                self._lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def close(self) -> None:
        """End it, with all that it has started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(PATIENCE)
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
