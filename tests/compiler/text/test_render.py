"""Diagnostics as text."""

import json
import re
import subprocess
import sys

from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.render import render

UNKNOWN = Diagnostic(
    file="plant.yaml",
    line=3,
    column=5,
    path="pipelines[0].tpoic",
    code="unknown-key",
    message="unknown key 'tpoic'",
    found='"tpoic"',
    expected="one of [id], topic",
    suggestion="did you mean 'topic'?",
)
REMARK = Diagnostic(
    file="plant.yaml", line=9, severity=Severity.WARNING, code="blank", message="nothing here"
)
MISSING = Diagnostic(file="b.json", code="missing-file", message="no such file")


def uncoloured(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def caret_and_line(text, column):
    """Return what the terminal shows of a text of one line: the line and the caret below it."""
    place = Diagnostic(file="a", line=1, column=column, code="blank", message="m")
    shown = uncoloured(render([place], style="terminal", sources={"a": text})).splitlines()
    return [line[7:] for line in shown[2:4]]


def test_plain_is_one_line_each_without_what_is_unknown():
    text = render([UNKNOWN, REMARK, MISSING], style="plain")

    assert text.splitlines() == [
        "plant.yaml:3:5: pipelines[0].tpoic: unknown key 'tpoic' (did you mean 'topic'?)",
        "plant.yaml:9: warning: nothing here",
        "b.json: no such file",
    ]


def test_plain_stays_one_line_whatever_a_message_contains():
    text = render([Diagnostic(code="blank", message="a\nb\x1b[31m\x85\u2028")], style="plain")

    assert text == r"a\nb\x1b[31m\x85\u2028"


def test_a_diagnostic_may_bring_the_text_of_its_file_itself():
    place = Diagnostic(
        file="x.rhai", line=2, column=3, code="not-compiled", message="m", text="a\r\n bcd\re"
    )

    shown = uncoloured(render([place], style="terminal", sources={"a.yaml": "none\nof it"}))

    assert shown.splitlines()[1:4] == ["  --> x.rhai:2:3", "   2 |  bcd", "     |   ^"]


def test_json_is_one_array_of_all_the_keys():
    text = render([UNKNOWN, REMARK], style="json")

    assert json.loads(text) == [UNKNOWN.as_json(), REMARK.as_json()]


def test_json_can_be_written_whatever_a_file_is_called():
    diagnostic = Diagnostic(file="\udcff.json", code="missing-file", message="größe")

    text = render([diagnostic], style="json")

    assert json.loads(text.encode()) == [diagnostic.as_json()]
    assert "größe" in text


def test_nothing_to_say_is_nothing_said():
    assert render([], style="plain") == ""
    assert render([], style="terminal") == ""
    assert render([], style="json") == "[]"


def test_a_terminal_shows_the_line_and_a_caret():
    source = "pipelines:\n  - id: plc\n    tpoic: readings\n"

    text = render([UNKNOWN, MISSING], style="terminal", sources={"plant.yaml": source})

    assert uncoloured(text).splitlines() == [
        "error[unknown-key]: unknown key 'tpoic'",
        "  --> plant.yaml:3:5  pipelines[0].tpoic",
        "   3 |     tpoic: readings",
        "     |     ^",
        '   = found: "tpoic"',
        "   = expected: one of [id], topic",
        "   = did you mean 'topic'?",
        "",
        "error[missing-file]: no such file",
        "  --> b.json",
    ]


def test_without_any_place_a_terminal_shows_the_message_alone():
    nowhere = Diagnostic(code="blank", message="nothing here")

    assert uncoloured(render([nowhere], style="terminal")) == "error[blank]: nothing here"


def test_a_terminal_is_coloured_by_severity():
    assert "\x1b[1;31merror[missing-file]" in render([MISSING], style="terminal")
    assert "\x1b[1;33mwarning[blank]" in render([REMARK], style="terminal")


def test_without_the_text_of_the_file_there_is_no_excerpt():
    assert uncoloured(render([UNKNOWN], style="terminal")).splitlines()[1:3] == [
        "  --> plant.yaml:3:5  pipelines[0].tpoic",
        '   = found: "tpoic"',
    ]


def test_a_place_beyond_the_text_has_no_excerpt():
    text = render([UNKNOWN], style="terminal", sources={"plant.yaml": "pipelines:"})

    assert "^" not in text


def test_the_caret_stands_below_its_character_after_tabs_and_wide_ones():
    assert caret_and_line("\t漢é: x", 5) == [" 漢é: x", "     ^"]


def test_of_a_long_line_the_surroundings_are_shown():
    line, caret = caret_and_line("a" * 500 + "x" + "b" * 500, 501)

    assert line == "..." + "a" * 60 + "x" + "b" * 39 + "..."
    assert caret == " " * 63 + "^"


def test_no_control_character_reaches_the_terminal():
    stray = Diagnostic(
        file="a\x1b", line=1, column=1, code="blank", message="\x1b[2J\n", found="\x07", expected=""
    )

    text = uncoloured(render([stray], style="terminal", sources={"a\x1b": "\x1b]0;\x9b"}))

    assert text.replace("\n", "").isprintable()


def test_only_a_terminal_pays_for_colours():
    program = (
        "import sys, headrace.compiler.text.render as r; r.render([], style='plain');"
        "r.render([], style='json'); sys.exit('rich' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
