"""`headrace check` of scripts: the very line and column, in the config or in the script's own file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.config.program import load_pipeline
from headrace.compiler.text.documents import read
from headrace.web.docs.transcripts import checked
from tests.web.commands.checked import check, config_of, written

pytestmark = pytest.mark.usefixtures("in_a_folder")


def test_a_script_with_nothing_wrong_prints_nothing() -> None:
    source = '{type: inline, code: "emit(`${msg.a}`)"}'

    assert check(written("a.yaml", config_of(source))) == (0, [])


BLOCK = """\
- inputs: [{type: dummy, duration: 1}]
  transforms:
    - type: script
      source:
        type: inline
        code: |
          let x = 1;

          if msg.temp > 50.0 {
            emit(msg;
          }
"""


def test_inline_code_is_pointed_at_in_the_config() -> None:
    told = checked(Path(written("a.yaml", BLOCK)))

    assert (
        told
        == """\
```console
$ headrace check a.yaml
error[not-compiled]: the script does not compile: Expecting ',' to separate the arguments to\
 function call 'emit'
  --> a.yaml:10:21  pipelines[0].transforms[0].source.code
  10 |             emit(msg;
     |                     ^
1 file checked: 1 error, 0 warnings
```"""
    )


DOCUMENT = """\
- transforms:
  - source:
      {}
      type: inline
    type: script
  inputs: [{{type: dummy, duration: 1}}]
"""


# In each the mistake is the ';' where a call should be closed.
SPELT = {
    "a literal block": ("code: |\n        // c\n          emit(msg;", (5, 19)),
    "an indicator and leading blank lines": ("code: |1-\n\n\n        emit(msg;", (6, 17)),
    "a folded block": ("code: >-\n        let x = 1;\n        emit(msg;", (5, 17)),
    "plain text": ("code: emit(msg;", (3, 21)),
    "plain text of several lines": ("code:\n        let x = 1;\n\n        emit(msg;", (6, 17)),
    "single quotes": ("code: 'let x = \"it''s\"; emit(msg;'", (3, 39)),
    "folded double quotes": ('code: "let x = \\"\\u00e9\\";\n\n        emit(msg;"', (5, 17)),
    "tabs and characters of any plane": ('code: |\n        "é😀"; \temit(msg;', (4, 24)),
    "an anchor": ("code: &c |\n        emit(msg;", (4, 17)),
}


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(("source", "place"), SPELT.values(), ids=SPELT)
def test_inline_code_is_pointed_at_however_it_is_spelt(source, place, ends) -> None:
    text = DOCUMENT.format(source).replace("\n", ends)

    code, [line] = check(written("a.yaml", text))

    assert code == 1
    assert line.startswith(
        f"a.yaml:{place[0]}:{place[1]}: pipelines[0].transforms[0].source.code: the "
    )


def test_code_behind_an_alias_is_pointed_at_where_it_is_written() -> None:
    text = """\
- inputs: [{type: dummy, duration: 1}]
  transforms:
    - type: script
      source:
        type: inline
        code: &c |
          emit(msg;
    - type: script
      source: {type: inline, code: *c}
"""

    _, lines = check(written("a.yaml", text))

    assert [line.partition(".source")[0] for line in lines] == [
        "a.yaml:7:19: pipelines[0].transforms[0]",
        "a.yaml:7:19: pipelines[0].transforms[1]",
    ]


def test_code_in_json_is_pointed_at_between_its_escapes() -> None:
    source = {"type": "inline", "code": 'let x = "é😀";\n\temit(msg;'}
    script = {"type": "script", "source": source}
    inputs = [{"type": "dummy", "duration": 1}]
    text = json.dumps([{"inputs": inputs, "transforms": [script]}], indent=2)

    code, [line] = check(written("a.json", text))

    [place] = re.findall(r"a.json:(\d+):(\d+): ", line)
    row, column = map(int, place)
    assert code == 1
    assert text.splitlines()[row - 1][column - 1 :] == ';"'


def test_a_posted_script_is_pointed_at_in_the_body() -> None:
    body = (
        b'{"inputs": [{"type": "http"}], "transforms": [{"type": "script",\n'
        b' "source": {"type": "inline", "code": "emit(msg;"}}]}'
    )

    refused, [diagnostic] = load_pipeline(read(body, None, "json"), catalogue())

    assert refused is None
    assert diagnostic.as_json() == {
        "file": None,
        "line": 2,
        "column": 48,
        "end_line": None,
        "end_column": None,
        "path": "transforms[0].source.code",
        "severity": "error",
        "code": "not-compiled",
        "message": "the script does not compile: Expecting ',' to separate the arguments"
        " to function call 'emit'",
        "found": None,
        "expected": None,
        "suggestion": None,
        "replacement": None,
    }


def test_a_script_file_is_pointed_at_with_its_own_line_wherever_the_config_is() -> None:
    written("plant/scripts/clean.rhai", "// tidy up\nlet é = 1;\n")
    config = written("plant/a.yaml", config_of("{type: file, path: scripts/clean.rhai}"))

    told = checked(Path(config))

    assert (
        """\
  --> plant/scripts/clean.rhai:2:5  pipelines[0].transforms[0].source.path
   2 | let é = 1;
     |     ^
"""
        in told
    )


def test_a_script_file_is_called_as_the_config_was_on_the_command_line(tmp_path: Path) -> None:
    written("plant/scripts/a.rhai", "emit(msg")
    written("plant/a.yaml", config_of("{type: file, path: scripts/a.rhai}"))

    for config in ("plant/a.yaml", str(tmp_path / "plant" / "a.yaml")):
        _, [line] = check(config)
        assert line.startswith(config.replace("a.yaml", "scripts/a.rhai") + ":1:9: ")


def test_a_posted_script_file_is_told_without_the_directories_of_the_server(tmp_path: Path) -> None:
    written("plant/scripts/a.rhai", "emit(msg")
    source = {"type": "file", "path": "scripts/a.rhai"}
    body = {"inputs": [{"type": "http"}], "transforms": [{"type": "script", "source": source}]}

    _, [diagnostic] = load_pipeline(
        read(json.dumps(body), None, "json"), catalogue(), base=tmp_path / "plant"
    )

    assert (diagnostic.file, diagnostic.line, diagnostic.column) == ("scripts/a.rhai", 1, 9)
    assert str(tmp_path) not in json.dumps(diagnostic.as_json())


def test_a_module_is_pointed_at_in_its_own_file() -> None:
    written("lib/units.rhai", "fn f(x) {\n  x +\n}\n")
    source = '{type: inline, code: "import \\"lib/units\\" as u; emit(u::f(1))"}'

    code, [line] = check(written("a.yaml", config_of(source)))

    assert code == 1
    assert line.startswith("lib/units.rhai:3:1: pipelines[0].transforms[0].source.code: 'lib/units")


def test_an_end_that_comes_too_early_is_shown_where_the_text_ends() -> None:
    written("a.rhai", "emit(msg\n\n\n")
    _, [of_file] = check(written("a.yaml", config_of("{type: file, path: a.rhai}")))
    _, [inline] = check(written("b.yaml", DOCUMENT.format("code: |+\n        emit(msg\n\n\n")))

    assert of_file.startswith("a.rhai:1:9: ")
    assert inline.startswith("b.yaml:4:17: ")


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("emit(msg.new)", 'msg["new"]'),
        ("msg.default = 1; emit(msg)", 'msg["default"]'),
        ("emit(msg.a?.if)", 'msg.a["if"]'),
        ("emit(msg . private)", 'msg["private"]'),
        ("emit(#{ a: 1, new: 2 })", '"new"'),
        ("emit(#{ in: 2 })", '"in"'),
    ],
)
def test_a_reserved_word_as_a_field_gets_its_spelling_suggested(code: str, hint: str) -> None:
    _, [line] = check(written("a.yaml", config_of(f"{{type: inline, code: {json.dumps(code)}}}")))

    assert line.endswith(f"{hint})")
    assert "(a field of that name is " in line


@pytest.mark.parametrize("code", ["let new = 1; emit(1)", "emit(1, new)", "emit(1"])
def test_nothing_is_suggested_where_no_field_is_meant(code: str) -> None:
    _, [line] = check(written("a.yaml", config_of(f"{{type: inline, code: {json.dumps(code)}}}")))

    assert "a field of that name" not in line
