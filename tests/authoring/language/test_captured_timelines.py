"""A capture as a timeline of a test: each input gets what arrived at it, when it did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.text.diagnostics import Diagnostic
from tests.authoring.language.test_capturefile import written
from tests.authoring.language.test_testfile import arrivals, case, loaded
from tests.authoring.testing.suite import only

LINES = (
    {"at": 1.5, "to": "w.inputs[0]", "batch": [{"$any": 1, "$$x": 2}], "meta": {"topic": "t"}},
    {"at": 2, "to": "line.inputs[0]", "batch": [{"temp": 90}, {"temp": 20}]},
    {"at": 3, "to": "w.inputs[0]", "raw": "{"},
    {"at": 9, "end": "seconds", "records": 3, "dropped": 0},
)


def refused(folder: Path, line: str) -> Diagnostic:
    _, said = loaded(f"tests:\n  it works:\n    {line}\n", folder)
    [fault] = [each for each in said if each.code != "checks-nothing"]
    return fault


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.ndjson").write_bytes(written(*LINES))
    return tmp_path


def test_an_input_gets_what_arrived_at_it_at_its_moments(folder: Path) -> None:
    found = case("    given: {w: {$file: c.ndjson}}", folder=folder)

    assert arrivals(found) == [(1.5, [{"$any": 1, "$$x": 2}]), (3, b"{")]
    assert found.given[0].arriving.meta == {"topic": "t"}
    assert found.until == 3


def test_all_of_it_can_be_later(folder: Path) -> None:
    found = case("    given: {w: {$file: c.ndjson, $from: 1m}}", folder=folder)

    assert [moment for moment, _ in arrivals(found)] == [61.5, 63]


def test_a_test_is_played_on_it(folder: Path) -> None:
    told = only(
        folder,
        "    given: {line: {$file: c.ndjson}}\n    expect: {line: {2s: {high: 90}}}",
    )

    assert told.outcome == "passed", told.lines


@pytest.mark.parametrize(
    ("line", "place", "code", "said"),
    [
        (
            "given: {w: {$file: c.ndjson, $every: 1s}}",
            "3:34",
            "conflict",
            "a capture tells itself when each message came",
        ),
        (
            'given: {"two.inputs[0]": {$file: c.ndjson}}',
            "3:38",
            "not-captured",
            "\"c.ndjson\" has nothing for 'two.inputs[0]'",
        ),
        (
            "expect: {w: {$file: c.ndjson}}",
            "3:25",
            "not-captured",
            "a capture tells what arrives at inputs, and nothing else",
        ),
        (
            "given: {state.last: {$file: c.ndjson}}",
            "3:33",
            "not-captured",
            "a capture tells what arrives at inputs, and nothing else",
        ),
    ],
)
def test_what_is_wrong_is_told_where_it_is(
    folder: Path, line: str, place: str, code: str, said: str
) -> None:
    fault = refused(folder, line)

    assert (f"{fault.line}:{fault.column}", fault.code, fault.message) == (place, code, said)


def test_what_there_is_instead_is_told(folder: Path) -> None:
    assert refused(folder, 'given: {"two.inputs[0]": {$file: c.ndjson}}').expected == (
        "one of w.inputs[0], line.inputs[0]"
    )


def test_one_that_is_cut_off_is_told_with_the_line(folder: Path) -> None:
    text = written(*LINES)
    (folder / "c.ndjson").write_bytes(text[: text.index(b'{"at":3') + 9])

    fault = refused(folder, "given: {w: {$file: c.ndjson}}")

    assert (fault.file, fault.line) == ("c.ndjson", 4)
    assert fault.message.startswith("the capture is cut off in the middle of this line")


def test_bytes_are_not_given_to_an_input_that_takes_none(folder: Path) -> None:
    lines: list[Any] = [{"at": 1, "to": "line.inputs[0]", "raw": "{"}]
    (folder / "c.ndjson").write_bytes(written(*lines))

    told = only(folder, "    given: {line: {$file: c.ndjson}}\n    expect: {}")

    assert told.outcome == "error"
    assert "what arrives at an input of type 'http' is JSON" in "\n".join(told.lines)
