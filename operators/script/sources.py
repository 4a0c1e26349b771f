"""Where the text of a script comes from: the config itself, or a file below the config's directory."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import Name, ScriptText, refused
from headrace.compiler.schema.records import option
from headrace.compiler.schema.variants import Tagged
from headrace.compiler.text.composing import MalformedDocument
from headrace.compiler.text.decoding import check, check_size, decoded
from headrace.compiler.text.diagnostics import Fault, Spot, shown
from headrace.compiler.text.positions import LineIndex

LARGEST = 2**20
"""How many bytes a script may have, and each module it imports."""
EXTENSION = ".rhai"
BELOW = "a file below the config's directory"
"""What is expected of a path: that directory has a name that users of the API need not know."""

_LONE_RETURN = re.compile(r"\r(?!\n)")


class ScriptPath(Name):
    """The path of a script file below the config's directory."""

    expects = "a path below the config's directory, without '.' and '..'"

    def read(self, value: Any) -> str:
        """Take a relative path that only descends."""
        path: str = super().read(value)
        if wrong := objection(path):
            message = f"{shown(path)} {wrong}: expected {self.expects}"
            raise refused("outside-root", message, found=path, expected=self.expects)
        return path


def objection(path: str) -> str | None:
    """Return what is wrong with a path before anybody looks for the file, or None."""
    segments = path.split("/")
    if path.startswith("/"):
        return "is absolute"
    if "\0" in path:
        return "holds a NUL character"
    if ways_out := [each for each in segments if each in (".", "..")]:
        return f"has a segment '{ways_out[0]}'"
    return "has an empty segment" if "" in segments else None


@dataclass
class ScriptFiles:
    """The script files below a directory; without one there are none. ``texts``: what was read.

    ``reads`` is told of each before it is read.
    """

    base: Path | None
    reads: Callable[[str], None] = lambda path: None
    texts: dict[str, str] = field(default_factory=dict)

    def module(self, path: str) -> str:
        """Return the text of what a script imports.

        Raises:
            BuildRefused: see `text`.
        """
        if wrong := objection(path):
            raise BuildRefused(_way_out(path, wrong))
        return as_the_engine_counts(self.text(path + EXTENSION))

    def text(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            BuildRefused: there is none, it is not one that may be read, or it is no text.
        """
        if path not in self.texts:
            self.texts[path] = self._text(path, self._octets(path))
        return self.texts[path]

    def _octets(self, path: str) -> bytes:
        target = self._confined(path)
        self.reads(path)
        try:
            with open(target, "rb", opener=_opened) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise _unreadable(path, "it is no file")
                octets = file.read(LARGEST + 1)
        except FileNotFoundError as cause:
            raise BuildRefused(self._missing(path)) from cause
        except OSError as cause:
            raise _unreadable(path, cause.strerror) from cause
        if len(octets) > LARGEST:
            raise BuildRefused(_too_large(f"the script '{path}'"))
        return octets

    def _confined(self, path: str) -> str:
        """Return where a file really is."""
        if self.base is None:
            raise BuildRefused(
                Fault(
                    "outside-root",
                    f"'{path}' cannot be read: without a config file there is no directory for it",
                    expected="an inline script without imports, or a server with a config file",
                )
            )
        if wrong := objection(path):
            raise BuildRefused(_way_out(path, wrong))
        base = os.path.realpath(self.base)
        target = os.path.realpath(os.path.join(base, path))
        if os.path.commonpath((target, base)) != base:
            message = f"a link leads '{path}' out of the config's directory"
            raise BuildRefused(Fault("outside-root", message, found=path, expected=BELOW))
        return target

    def _missing(self, path: str) -> Fault:
        assert self.base is not None
        hint = ""
        if path.endswith(EXTENSION * 2):
            hint = f": an import leaves out '{EXTENSION}'"
        elif os.path.exists(self.base / (path + EXTENSION)):
            hint = f": did you mean '{path}{EXTENSION}'?"
        message = f"there is no script file '{path}'{hint}"
        return Fault("missing-file", message, found=path, expected=BELOW)

    def _text(self, path: str, octets: bytes) -> str:
        text = decoded(octets)
        if not text.strip():
            raise BuildRefused(Fault("blank", f"the script '{path}' is blank"))
        try:
            check_size(octets)  # which also sees what is wide
            check(text, "json", octets)
        except MalformedDocument as cause:
            line, column = LineIndex(text).at(cause.offset)
            spot = Spot(line, column, path, text)
            message = f"'{path}': {cause.fault.message}"
            raise BuildRefused(replace(cause.fault, message=message, spot=spot)) from cause
        return text


def _opened(path: str, flags: int) -> int:
    """Open a file; whoever waits for the writer of a pipe may wait for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def _way_out(path: str, wrong: str) -> Fault:
    return Fault("outside-root", f"the path {shown(path)} {wrong}", found=path)


def _unreadable(path: str, why: str | None) -> BuildRefused:
    return BuildRefused(Fault("unreadable-file", f"the script '{path}' cannot be read: {why}"))


def _too_large(what: str) -> Fault:
    return Fault("too-large", f"{what} is larger than {LARGEST // 2**20} MiB")


class ScriptSource(Tagged):
    """Where the text of a script is."""

    key: ClassVar[str]
    """The option that tells; what is wrong with the text is told there."""

    @property
    def file(self) -> str | None:
        """The file that the script is in; None: it is in the config."""
        return getattr(self, "path", None)

    @property
    def name(self) -> str:
        """What the script is called in errors and in the log: as the config names its file."""
        return "script" if self.file is None else self.file

    def text(self, files: ScriptFiles) -> str:
        """Return the script.

        Raises:
            BuildRefused: it cannot be read.
        """
        raise NotImplementedError

    def texts(self, files: ScriptFiles) -> dict[str | None, str]:
        """Return it and its modules by file, after it was compiled."""
        texts: dict[str | None, str] = {self.file: self.text(files)}
        return texts | files.texts


class InlineScript(ScriptSource, tag="inline", elsewhere="code text"):
    """In the config itself."""

    key = "code"

    code: str = option(ScriptText(), "The script.", elsewhere="script source text")

    def text(self, files: ScriptFiles) -> str:
        """Return the script.

        Raises:
            BuildRefused: it is too large.
        """
        if len(self.code.encode()) > LARGEST:
            raise BuildRefused(_too_large("this script"))
        return self.code


class ScriptFile(ScriptSource, tag="file", elsewhere="path"):
    """In a file below the config's directory."""

    key = "path"

    path: str = option(
        ScriptPath(),
        "The file, with its extension, relative to the config's directory.",
        elsewhere="file filename name",
    )

    def text(self, files: ScriptFiles) -> str:
        """Return the script.

        Raises:
            BuildRefused: the file is not there or cannot be used.
        """
        return files.text(self.path)


def as_the_engine_counts(text: str) -> str:
    """Return a script with the line ends that the engine counts, every character where it was."""
    return _LONE_RETURN.sub("\n", text)
