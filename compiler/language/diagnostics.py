"""What is wrong with a config, and where: diagnostics, faults and the table of their codes.

A `Fault` is said by whoever knows the rule, with a path from where it is raised. A `Diagnostic` is
the same fault once the document it came from has given it a file, a line and a column.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath as FilePath
from types import MappingProxyType
from typing import Any

Path = tuple[str | int, ...]
"""A config path: keys of objects and places in lists, from 0."""

CODES: Mapping[str, str] = MappingProxyType(
    {
        # Reading a document.
        "alias": "A YAML alias names nothing that stands above it, or the value it is part of.",
        "control-character": "The document contains a character that no text needs.",
        "duplicate-key": "An object gives the same key twice.",
        "empty-document": "The document contains nothing.",
        "key-not-text": "A YAML key is something else than a string.",
        "lone-surrogate": "A string contains half of a surrogate pair, which is no character.",
        "malformed-json": "The document is not JSON.",
        "malformed-yaml": "The document is not YAML.",
        "merge-key": "A YAML merge key ('<<'), which YAML 1.2 does not have.",
        "missing-file": "The file does not exist.",
        "not-text": "The document is not UTF-8 text.",
        "number-too-large": "A number is larger than its type can hold, or is not finite.",
        "several-documents": "The file contains more than one YAML document.",
        "tab": "A tab indents a line of YAML.",
        "tag": "A YAML tag ('!something'), which a config has no use for.",
        "too-deep": "Lists and objects are nested too deeply.",
        "too-large": "The document is larger than a config may be, or a script than a script may.",
        "too-many-aliases": "YAML aliases blow the document up to a size beyond reason.",
        "unreadable-file": "The file cannot be read.",
        # What the document says.
        "blank": "A name or a text is empty.",
        "conflict": "Two settings of one component exclude each other, or one needs another.",
        "cycle": "Pipelines feed each other in a circle.",
        "duplicate": "A name that must be unique is given twice.",
        "empty-credential": "A credential resolves to nothing.",
        "illegal-header": "A header has a name or a value that HTTP does not allow.",
        "missing-key": "A required key is absent.",
        "missing-upstream": "A pipeline reads from one that does not exist.",
        "no-bound": "Nothing bounds what a buffer holds.",
        "no-state": "A component uses state in a pipeline that names no bucket.",
        "no-trigger": "Nothing ever releases what a buffer holds.",
        "not-a-hash": "A password hash is none, or not one of argon2id.",
        "not-a-node": "A node id is not written as OPC UA servers write them.",
        "not-a-subject": "A subject or topic is not written as its broker takes it.",
        "not-a-choice": "A word is not one of those that are possible.",
        "not-a-user-name": "A user name cannot be sent with a password.",
        "not-a-url": "A url is malformed, or of a scheme that the component does not take.",
        "not-an-address": "An address of a server is no host and port.",
        "not-an-identifier": "A table or a column has a name that is no plain identifier.",
        "not-compiled": "A script does not compile.",
        "nothing-to-acknowledge": "An input that cannot acknowledge is asked to.",
        "out-of-range": "A number or a length is outside its bounds.",
        "outside-root": "A path leaves the directory it has to stay in.",
        "scalar-in-the-way": "A path leads through a value that cannot be an object.",
        "second-input": "An input of which a pipeline can have only one is there twice.",
        "turned-away": "A server says no: to a credential, a certificate, or to TLS as it is configured.",
        "unknown-bucket": "A name of a bucket that the config does not declare.",
        "unknown-column": "A key or an index names a column that is not mapped.",
        "unknown-connection": "A component names a connection that is not filed.",
        "unknown-key": "A key that nothing reads.",
        "unknown-kind": "A 'type' that is no known component.",
        "unresolved-secret": "A '${NAME}' reference that nothing answers.",
        "wrong-type": "A value has another type than the key takes.",
        "zero-divisor": "A division by a constant zero.",
        # Warnings.
        "fails-on-null": "A component fails on null where an earlier one may write null.",
        "literal-reference": "A plain setting contains '${', which only secrets resolve.",
        "literal-template": "A name or a path contains a template, which nothing fills in.",
        "literal-variable": "A secret contains what looks like '$NAME', a reference without its braces.",
        "never-reached": "A component can never see a message.",
        "no-emit": "A script never calls 'emit', so it hands on nothing.",
        "not-applied": "A setting does nothing, because of another one.",
        "not-honoured": "A setting asks for something that the component never does.",
        "not-handed-on": "A component reads a path that an earlier one does not hand on.",
        "nothing-batches": "A reducer has nothing before it that makes batches.",
        "starves-broker": "A broker stops sending, because what it sent is held and not acknowledged.",
        "unknown-function": "A script calls a function that neither it nor the language has.",
    }
)
"""Every code a diagnostic can carry, each with its meaning in one sentence."""

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

    ``text`` is that of the file, where it is no document that the reader knows already; empty, where no
    line of it may be shown.

    Units: lines and columns count from 1, columns in characters.
    """

    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str = ""
    severity: Severity = Severity.ERROR
    code: str
    message: str
    found: str | None = None
    expected: str | None = None
    suggestion: str | None = None
    text: str | None = field(default=None, repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Return the diagnostic as a JSON object; what is unknown is null."""
        told = asdict(self) | {"severity": self.severity.value}
        del told["text"]
        return told


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
    instead of its value, as an unknown key wants; ``spot`` at a place inside the value. Of what is
    confidential not even the line of the file is shown.
    """

    code: str
    message: str
    found: str | None = None
    expected: str | None = None
    suggestion: str | None = None
    path: Path = ()
    on_key: bool = False
    severity: Severity = Severity.ERROR
    spot: Spot | None = None
    is_confidential: bool = False


def diagnosed(
    fault: Fault, file: str | None, position: tuple[int, int] | None, path: Path
) -> Diagnostic:
    """Return a fault with its place: that in the document, or in the file that it names itself.

    A file is called as the document is: what came without one, through the API, is told nothing of
    the directories of the server.
    """
    spot, text = fault.spot, "" if fault.is_confidential else None
    if spot is not None and spot.file is not None:
        file = spot.file if file is None else str(FilePath(file).parent / spot.file)
        position, text = (spot.line, spot.column), spot.text
    line, column = position or (None, None)
    return Diagnostic(
        file=file,
        line=line,
        column=column,
        path=_short(path_text(path)),
        severity=fault.severity,
        code=fault.code,
        message=_short(fault.message),
        found=None if fault.found is None else _short(fault.found),
        expected=fault.expected,
        suggestion=fault.suggestion,
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
    for piece in _WRITER.iterencode(_cut(value)):
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


def _cut(value: Any) -> Any:
    """Spare the writer a long string of which only the beginning is shown."""
    return value[: _SHOWN + 1] if isinstance(value, str) else value


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_KEY.fullmatch(step):
        return f".{step}"
    return f"[{printable(json.dumps(step, ensure_ascii=False))}]"
