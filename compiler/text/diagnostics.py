"""What is wrong with a config, and where: diagnostics, faults and the table of their codes.

A `Fault` is said by whoever knows the rule, with a path from where it is raised. A `Diagnostic` is
the same fault once the document it came from has given it a file, a line and a column.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath as FilePath
from typing import Any, NamedTuple, Self

Path = tuple[str | int, ...]
"""A config path: keys of objects and places in lists, from 0."""

Codes = Mapping[str, str]
"""Codes that a diagnostic can carry, each with its meaning in one sentence."""

CODES: Codes = {
    "blank": "A name or a text is empty.",
    "conflict": "Two settings of one component exclude each other, or one needs another.",
    "control-character": "The document contains a character that no text needs.",
    "duplicate": "A name that must be unique is given twice.",
    "empty-credential": "A credential resolves to nothing.",
    "illegal-header": "A header has a name or a value that HTTP does not allow.",
    "missing-file": "The file does not exist.",
    "missing-key": "A required key is absent.",
    "no-data-dir": "Something is to be kept, and nobody has said in which directory.",
    "no-trigger": "Nothing ever releases what a buffer holds.",
    "not-a-choice": "A word is not one of those that are possible.",
    "not-a-subject": "A subject or topic is not written as its broker takes it.",
    "not-an-address": "An address of a server is no host and port.",
    "out-of-range": "A number or a length is outside its bounds.",
    "outside-root": "A path leaves the directory it has to stay in.",
    "too-deep": "Lists and objects are nested too deeply.",
    "too-large": "The document is larger than a config may be, or a script than a script may.",
    "unreadable-file": "The file cannot be read.",
    "wrong-type": "A value has another type than the key takes.",
}
"""Those that anybody may say. Whoever alone says one declares it, in a table of this name."""

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")
_MOST_TEXT = 1000
_SHOWN = 60


class Severity(enum.StrEnum):
    """Whether a diagnostic refuses the config or only remarks on it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One problem of one document, with everything a reader needs to mend it.

    ``end_line`` and ``end_column`` are the place behind the last character of what is wrong; there is none
    of what is missing, and of a single place in a text. ``replacement`` is what would do between both, as
    the document would spell it. ``text`` is that of the file, where it is no document that the reader knows
    already; empty, where no line of it may be shown.

    Units: lines and columns count from 1, columns in characters (Unicode code points: an editor that counts
    in UTF-16 has two for one beyond U+FFFF).
    """

    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    path: str = ""
    severity: Severity = Severity.ERROR
    code: str
    message: str
    found: str | None = None
    expected: str | None = None
    suggestion: str | None = None
    replacement: str | None = None
    text: str | None = field(default=None, repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Return the diagnostic as a JSON object; what is unknown is null."""
        told = asdict(self) | {"severity": self.severity.value}
        del told["text"]
        return told


class Range(NamedTuple):
    """Where something stands in a document: from its first character up to the one behind its last.

    Without an end it is a place, and not what stands there. Units: as of a `Diagnostic`.
    """

    line: int
    column: int
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Spot:
    """A place inside a text: of the string that a fault is about, or of a file that it names.

    ``file`` is called as the config calls it: by its path from the config's directory.

    Units: line and column count from 1, the column in characters. ``text`` is what they count in.
    """

    line: int
    column: int
    file: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """What a field, a record or a rule objects to, before its place in a file is known.

    ``path`` leads on from the value where the fault is raised. ``on_key`` points at the key
    instead of its value, as an unknown key wants; ``spot`` at a place inside the value. ``replacement``
    is the word that is probably meant by the one it points at. Of what is confidential not even the line
    of the file is shown.
    """

    code: str
    message: str
    found: str | None = None
    expected: str | None = None
    suggestion: str | None = None
    replacement: str | None = None
    path: Path = ()
    on_key: bool = False
    severity: Severity = Severity.ERROR
    spot: Spot | None = None
    is_confidential: bool = False

    def meaning(self, word: str | None) -> Self:
        """Return the fault of having written another word than this one; None: nobody can tell which."""
        if word is None:
            return self
        return replace(self, suggestion=f"did you mean '{word}'?", replacement=word)


def repeated(
    names: Iterable[tuple[str, Path]],
    *,
    said: str = "'{name}' is written by {place} already",
    expected: str = "a name of its own",
) -> Iterator[Fault]:
    """Refuse each name that is there twice; it comes with where it stands: ``("remember", 0, "as")``.

    ``said`` is told of it, with the name and the place where it is for the first time.
    """
    first: dict[str, Path] = {}
    for name, path in names:
        if first.setdefault(name, path) != path:
            message = said.format(name=name, place=path_text(first[name][:2]))
            yield Fault("duplicate", message, found=name, expected=expected, path=path)


def diagnosed(
    fault: Fault,
    file: str | None,
    place: Range | None,
    path: Path,
    replacement: str | None = None,
) -> Diagnostic:
    """Return a fault with its place: that in the document, or in the file that it names itself.

    A file is called as the document is: what came without one, through the API, is told nothing of
    the directories of the server.
    """
    spot, text = fault.spot, "" if fault.is_confidential else None
    if spot is not None and spot.file is not None:
        file = spot.file if file is None else str(FilePath(file).parent / spot.file)
        place, text = Range(spot.line, spot.column), spot.text
    line, column, end_line, end_column = place or (None, None, None, None)
    return Diagnostic(
        file=file,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        path=_short(path_text(path)),
        severity=fault.severity,
        code=fault.code,
        message=_short(fault.message),
        found=None if fault.found is None else _short(fault.found),
        expected=fault.expected,
        suggestion=fault.suggestion,
        replacement=replacement,
        text=text,
    )


def _short(text: str) -> str:
    """Return a text that may quote a document, or its beginning: a key can have millions of letters."""
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def path_text(path: Path) -> str:
    """Return a config path as people write it: ``pipelines[2].inputs[0].topic``."""
    return "".join(map(_step, path)).removeprefix(".")


def in_file_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics as the files are read: file after file, each from top to bottom.

    Files keep the order in which they first appear; what has no line precedes what has one.
    """
    listed = list(diagnostics)
    files = {file: place for place, file in enumerate(dict.fromkeys(d.file for d in listed))}
    return sorted(listed, key=lambda d: (files[d.file], d.line or 0, d.column or 0))


def shown(value: Any) -> str:
    """Return a found value for a message: compact JSON, cut after 60 characters.

    Never for a secret. However large the value is, only its beginning is looked at.
    """
    text = ""
    # The writer is spared a long string of which only the beginning is shown.
    cut = value[: _SHOWN + 1] if isinstance(value, str) else value
    for piece in _WRITER.iterencode(cut):
        text += piece
        if len(text) > _SHOWN:
            break
    text = printable(text)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def spelled(value: Any) -> str:
    """Return a found value as a suggestion repeats it: as `shown`, of a long one only ``...``."""
    text = shown(value)
    return text if len(text) < _SHOWN else "..."


def printable(text: str) -> str:
    """Return the text on one line, with characters that do not print written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=repr)


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_KEY.fullmatch(step):
        return f".{step}"
    return f"[{printable(json.dumps(step, ensure_ascii=False))}]"
