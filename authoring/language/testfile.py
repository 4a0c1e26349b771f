"""A file of tests: `config.tests.yaml`, read with positions and checked whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path as FilePath
from typing import Any, ClassVar

from headrace.authoring.language.durations import as_start, not_a_time
from headrace.authoring.language.marbles import name_fault
from headrace.authoring.language.testcase import CaseReading, TestCase
from headrace.authoring.language.testshape import AnyName, TestShape
from headrace.authoring.language.testtargets import Targets
from headrace.authoring.language.timelines import TimelineReader
from headrace.authoring.playing.scenario import START
from headrace.compiler.component.drafts import loaded
from headrace.compiler.config.program import Program
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.fields import AnyJson, Name, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import RecordOf
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import (
    Diagnostic,
    Fault,
    Path,
    Severity,
    in_file_order,
)
from headrace.compiler.text.documents import Document, Site
from headrace.compiler.timestamps import rfc3339


class TestFileShape(Record):
    """Tests of the config beside it."""

    __test__: ClassVar[bool] = False

    config: str | None = option(
        Name(),
        "The config, named from this file. Left out: the one beside it, `config.yaml` beside "
        "`config.tests.yaml`.",
        default=None,
    )
    start: str | None = option(
        Text(),
        "What the wall shows at 0s: RFC 3339, with its offset. Left out: 2026-01-01T00:00:00Z.",
        default=None,
    )
    messages: Mapping[str, Any] | None = option(
        AnyName(AnyJson(), noun="message"), "Names for marbles.", default=None, elsewhere="names"
    )
    tests: Mapping[str, TestShape] = option(
        AnyName(RecordOf(TestShape), noun="test"), "The tests, by name.", elsewhere="cases"
    )


@dataclass(frozen=True)
class TestFile:
    """The tests of a file."""

    __test__: ClassVar[bool] = False

    document: Document
    start: datetime
    cases: tuple[TestCase, ...] = field(default=())

    def line(self, path: Path) -> int | None:
        """Return the line at which a key stands."""
        position = self.document.position(path, on_key=True)
        return position and position[0]


def load_tests(
    document: Document,
    program: Program,
    connections: Mapping[str, Any],
    folder: FilePath | None = None,
) -> tuple[TestFile | None, list[Diagnostic]]:
    """Read a file of tests of a program; tell all that is wrong with it, in its order.

    The file is there if nothing is wrong with it but warnings. ``folder`` is where files are named from.
    """
    shape, valid, faults = loaded(TestFileShape, document.value)
    reading = _Reading(document, Targets(program, connections), valid, folder)
    cases = [reading.case(name, each) for name, each in _tests(document.value)]
    faults += [*reading.faults()]
    said = in_file_order(map(Site(document).diagnose, faults))
    if shape is None or any(each.severity is Severity.ERROR for each in said):
        return None, said
    return TestFile(document, reading.start, tuple(filter(None, cases))), said


def _tests(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield the tests as they are written, those with faults as well."""
    tests = value.get("tests") if isinstance(value, dict) else None
    yield from tests.items() if isinstance(tests, dict) else ()


class _Reading:
    """One file being read."""

    def __init__(
        self,
        document: Document,
        targets: Targets,
        valid: Mapping[str, Any],
        folder: FilePath | None,
    ) -> None:
        self._targets = targets
        self._faults: dict[Fault, None] = {}
        written = document.value.get("messages") if isinstance(document.value, dict) else None
        self._names: Mapping[str, JsonValue] = written if isinstance(written, dict) else {}
        self._timelines = TimelineReader(self._names, folder)
        self.start = self._started(valid.get("start"))

    def faults(self) -> Iterator[Fault]:
        """Yield all that is wrong."""
        yield from self._faults
        yield from self._timelines.faults
        for name in self._names:
            if (fault := name_fault(name)) is not None:
                yield replace(fault, path=("messages", name), on_key=True)
            elif self._timelines.is_legible and name not in self._timelines.used:
                said = f"no line of marbles names '{name}'"
                yield Fault(
                    "never-used",
                    said,
                    path=("messages", name),
                    on_key=True,
                    severity=Severity.WARNING,
                )

    def case(self, name: str, value: JsonValue) -> TestCase | None:
        """Read one test; None where it is no object at all, which is told already."""
        if not isinstance(value, dict):
            return None
        shape, valid, _ = loaded(TestShape, value)
        known = TestShape.options()
        right = {known[key].attribute: each for key, each in valid.items() if key in known}
        shape = shape or TestShape(**right)
        return CaseReading(self._targets, self._timelines, self.refuse, name, shape).read()

    def _started(self, text: str | None) -> datetime:
        if text is None:
            return START
        try:
            if len(text) == len("2026-03-02"):
                raise ValueError("a date alone")
            return as_start(datetime.fromisoformat(rfc3339(text)))
        except ValueError:
            expected = "a timestamp such as 2026-03-02T06:00:00Z"
            self.refuse(replace(not_a_time(text, expected), suggestion=None), ("start",))
            return START

    def refuse(self, fault: Fault, path: Path = ()) -> None:
        """Take what is wrong; what several moments have in common is told once."""
        if len(self._faults) < FAULTS:
            self._faults[replace(fault, path=(*path, *fault.path))] = None
