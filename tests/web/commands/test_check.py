"""`headrace check`: what it prints where, and its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.authoring.configfiles import catalogue
from headrace.compiler.text.render import render
from headrace.web.commands.check import COMPANIONS
from headrace.web.commands.cli import commands
from headrace.web.files.reading import Files, load

FINE = """\
- id: p
  inputs: [{type: dummy, duration: 1}]
"""
WRONG = """\
- id: p
  inputs: [{type: dummy, durtion: 1}]
  outputs: [{type: file, connection: disk, path: out}]
"""


pytestmark = pytest.mark.usefixtures("in_a_folder")


def written(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def check(*arguments: str) -> tuple[int, list[str], str]:
    result = CliRunner().invoke(commands, ["check", *arguments])
    return result.exit_code, result.stdout.splitlines(), result.stderr


def test_a_config_with_nothing_wrong_prints_nothing_and_is_fine() -> None:
    code, lines, told = check(written("a.yaml", FINE))

    assert (code, lines) == (0, [])
    assert told == "1 file checked: 0 errors, 0 warnings\n"


def test_what_is_wrong_is_a_line_each_in_file_order_and_refuses() -> None:
    code, lines, told = check(written("a.yaml", WRONG))

    assert code == 1
    assert lines == [
        "a.yaml:2:26: pipelines[0].inputs[0].durtion: unknown key 'durtion'"
        " (did you mean 'duration'?)",
        "a.yaml:3:38: pipelines[0].outputs[0].connection: there is no file connection 'disk'",
    ]
    assert told == "1 file checked: 2 errors, 0 warnings\n"


def test_json_is_one_array_of_objects_with_every_key() -> None:
    code, lines, told = check(written("a.yaml", WRONG), "--format", "json")

    assert (code, told) == (1, "")
    diagnostics = json.loads("\n".join(lines))
    assert len(diagnostics) == 2
    assert list(diagnostics[0]) == (
        [
            "file",
            "line",
            "column",
            "end_line",
            "end_column",
            "path",
            "severity",
            "code",
            "message",
            "found",
            "expected",
            "suggestion",
            "replacement",
        ]
    )


def test_json_of_nothing_wrong_is_an_empty_array() -> None:
    assert check(written("a.yaml", FINE), "--format", "json") == (0, ["[]"], "")


def test_all_problems_of_all_files_are_told_at_once() -> None:
    code, lines, _ = check(
        written("a.yaml", WRONG), "missing.json", written("b.json", "[{]"), written("c.yaml", FINE)
    )

    assert code == 1
    assert [line.partition(":")[0] for line in lines] == ["a.yaml"] * 2 + ["missing.json", "b.json"]
    assert lines[2] == "missing.json: no such file"


def test_the_companion_connections_file_is_read() -> None:
    config = WRONG.replace("durtion", "duration")
    written("a.connections.yaml", "disk: {type: file, root: out}\n")

    assert check(written("a.yaml", config))[0] == 0


def test_a_named_connections_file_takes_the_companions_place() -> None:
    config = written("a.yaml", WRONG.replace("durtion", "duration"))
    written("a.connections.yaml", "disk: {type: file, root: out}\n")
    other = written("other.json", '{"disc": {"type": "file", "root": "out"}}')

    code, lines, _ = check(config, "--connections", other)

    assert code == 1
    assert "there is no file connection 'disk'" in lines[0]


USING = """\
state: {}
pipelines:
  - id: second
    inputs: [{type: pipeline, upstream: first}]
    outputs:
      - {type: stdout}
      - {type: file, connection: disk, path: out}
  - id: first
    inputs: [{type: dummy, duration: 1}]
    outputs: [{type: file, connection: tape, path: out}]
"""
FILED = """\
tape: {type: file, root: tape}
spare: {type: file, root: spare}
disk:
  type: file
  root: disk
"""


def test_which_connection_each_component_uses_is_told_in_file_order() -> None:
    config = written("a.yaml", USING)
    written("a.connections.yaml", FILED)

    code, lines, told = check(config)

    assert (code, lines) == (0, [])
    assert told.splitlines() == [
        "a.yaml:7:34: pipelines[0].outputs[1] uses file connection 'disk' (a.connections.yaml:3:1)",
        "a.yaml:10:40: pipelines[1].outputs[0] uses file connection 'tape'"
        " (a.connections.yaml:1:1)",
        "1 file checked: 0 errors, 0 warnings",
    ]


def test_what_configs_use_of_a_shared_file_is_told_of_each() -> None:
    configs = [written("a.yaml", USING), written("b.yaml", USING), written("c.yaml", WRONG)]
    shared = written("shared.yaml", FILED)

    _, _, told = check(*configs, "--connections", shared)

    assert [line.split(":")[0] for line in told.splitlines()] == [
        *["a.yaml"] * 2,
        *["b.yaml"] * 2,
        "3 files checked",
    ]
    assert told.count("(shared.yaml:3:1)") == 2


def test_a_config_that_is_refused_uses_nothing_yet() -> None:
    written("a.connections.yaml", "disk: {type: file, root: out, rot: out}")

    _, _, told = check(written("a.yaml", WRONG.replace("durtion", "duration")))

    assert told == "1 file checked: 1 error, 0 warnings\n"


def test_json_tells_what_is_wrong_and_nothing_else() -> None:
    written("a.connections.yaml", FILED)

    assert check(written("a.yaml", USING), "--format", "json") == (0, ["[]"], "")


def test_a_check_connects_to_nobody_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    written("a.connections.yaml", FILED)
    before = sorted(Path().iterdir())

    def connect(*_: object) -> None:
        raise AssertionError("it connects")

    monkeypatch.setattr("socket.socket.connect", connect)
    monkeypatch.setattr("socket.getaddrinfo", connect)
    code, _, _ = check(written("a.yaml", USING))

    assert code == 0
    assert sorted(Path().iterdir()) == sorted([*before, Path("a.yaml")])


def test_a_plain_setting_of_a_connection_that_looks_like_a_reference_is_a_warning() -> None:
    written("a.connections.yaml", FILED.replace("root: disk", "root: '${DISK}'"))

    code, lines, _ = check(written("a.yaml", USING))

    assert code == 0
    assert lines == [
        "a.connections.yaml:5:9: disk.root: warning:"
        " '${' is taken as it stands here: only secrets resolve references"
    ]


@pytest.mark.parametrize("style", ["terminal", "plain", "json"])
def test_a_secret_that_lacks_its_braces_is_told_without_its_line(style: str) -> None:
    lines = "{ type: mqtt, host: a.org, username: ann, password: $WAGTAIL_7 }\n"
    written("a.connections.yaml", f"bus: {lines}far: {lines}")
    config = written("a.yaml", "- inputs: [{type: mqtt, connection: bus, topic: a}]\n")
    files = Files(Path(config), connections=Path("a.connections.yaml"))

    loaded = load(files, catalogue())
    text = render(loaded.diagnostics, style=style, sources=loaded.sources)

    assert text.count("what looks like $NAME is taken as it stands here") == 2
    assert "WAGTAIL" not in text
    assert "WAGTAIL" not in "".join(check(config, "--connections", "a.connections.yaml")[1])


def test_a_misspelt_connection_is_told_with_the_nearest_of_its_kind() -> None:
    written("a.connections.yaml", FILED)

    _, lines, _ = check(written("a.yaml", USING.replace("disk", "dsk")), "--format", "json")

    [diagnostic] = json.loads("\n".join(lines))
    assert diagnostic["expected"] == "one of disk, spare, tape"
    assert diagnostic["suggestion"] == "did you mean 'disk'?"


def test_a_named_connections_file_has_to_exist() -> None:
    code, lines, _ = check(written("a.yaml", FINE), "--connections", "none.json")

    assert (code, lines) == (1, ["none.json: no such file"])


def test_what_is_wrong_with_a_shared_connections_file_is_told_once() -> None:
    shared = written("shared.json", '{"disk": {"type": "fiel"}}')

    _, lines, _ = check(written("a.yaml", FINE), written("b.yaml", FINE), "--connections", shared)

    assert [line.partition(" ")[0] for line in lines] == ["shared.json:1:19:"]


LOCKED = """\
- id: p
  inputs: [{type: http, auth: {type: bearer, token: "${POST_TOKEN}"}}]
"""


def test_a_reference_that_nothing_answers_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POST_TOKEN", raising=False)

    code, lines, told = check(written("a.yaml", LOCKED))

    assert code == 0
    [line] = lines
    assert line.startswith("a.yaml:2:53: pipelines[0].inputs[0].auth.token: warning: ")
    assert "${POST_TOKEN}" in line
    assert told == "1 file checked: 0 errors, 1 warning\n"


def test_environment_and_secrets_file_answer_references(monkeypatch: pytest.MonkeyPatch) -> None:
    config = written("a.yaml", LOCKED)
    secrets = written("secrets.json", '{"POST_TOKEN": "s3cret"}')

    assert check(config, "--secrets", secrets)[1] == []
    monkeypatch.setenv("POST_TOKEN", "s3cret")
    assert check(config)[1] == []


def test_a_secrets_file_that_is_none_is_refused_and_its_values_are_not_told() -> None:
    secrets = written("secrets.json", '{"POST_TOKEN": ["s3cret"]}')

    code, lines, _ = check(written("a.yaml", LOCKED), "--secrets", secrets)

    assert code == 1
    assert lines == ["secrets.json:1:16: POST_TOKEN: expected a string, found a list"]


@pytest.mark.parametrize(
    "arguments", [[], ["a.yaml", "--format", "xml"], ["a.yaml", "--nope"]], ids=" ".join
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    assert check(*arguments)[0] == 2


def piped(text: str, *arguments: str) -> tuple[int, list[str], str]:
    result = CliRunner().invoke(commands, ["check", *arguments], input=text)
    return result.exit_code, result.stdout.splitlines(), result.stderr


@pytest.mark.parametrize(
    "text", [FINE, json.dumps([{"inputs": [{"type": "dummy", "duration": 1}]}])]
)
def test_a_config_may_come_from_standard_input(text: str) -> None:
    assert piped(text, "-") == (0, [], "1 file checked: 0 errors, 0 warnings\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (FINE.replace("duration", "durtion"), "<stdin>:2:26: pipelines[0].inputs[0].durtion: "),
        ('\ufeff [{"inputs": [],}]', "<stdin>:1:16: a comma before '}' is not JSON: remove it"),
        ("", "<stdin>:1:1: the document is empty"),
    ],
)
def test_what_is_wrong_with_standard_input_is_told_with_its_place(text: str, line: str) -> None:
    code, lines, _ = piped(text, "-")

    assert code == 1
    assert any(each.startswith(line) for each in lines)


def test_standard_input_takes_connections_and_scripts_from_the_working_directory() -> None:
    Path("a.rhai").write_text("emit(msg);")
    written("c.yaml", "disk: {type: file, root: out}\n")
    script = "  transforms: [{type: script, source: {type: file, path: a.rhai}}]\n"
    output = "  outputs: [{type: file, connection: disk, path: out}]\n"

    assert piped(FINE + script + output, "-", "--connections", "c.yaml")[:2] == (0, [])


def test_a_directory_stands_for_the_configs_in_it() -> None:
    Path("plant", "below").mkdir(parents=True)
    for name in ("b.yml", "a.yaml", "c.JSON", "below/d.yaml", ".e.yaml", "f.txt"):
        written(f"plant/{name}", "[]")
    for name in ("b.connections.yaml", "d.layout.json", "secrets.json", "plant.server.yaml"):
        written(f"plant/{name}", "no config")
    written("plant/filed.yaml", "disk: {type: file, root: out}\n")
    written("plant/a.yaml", WRONG)
    written("plant/a.connections.yaml", "disk: {type: file, root: out}\n")

    code, lines, told = check("plant", "plant/a.yaml", "--connections", "plant/filed.yaml")

    assert code == 1
    assert [line.partition(":")[0] for line in lines] == ["plant/a.yaml"]
    assert told == "3 files checked: 1 error, 0 warnings\n"


@pytest.mark.parametrize("behind", ["", "plant."])
def test_the_help_names_what_stands_beside_configs(behind: str) -> None:
    told = " ".join(CliRunner().invoke(commands, ["check", "--help"]).output.split())
    names = re.search(r"those that stand beside configs: (.+?), which are called so", told)
    examples = re.findall(r"\((\S+\.yaml)\)", told)
    assert names is not None
    listed = re.split(", | and ", names[1])
    assert sorted(listed) == sorted(COMPANIONS)
    assert examples == ["settings.yaml", "plant.settings.yaml"]

    Path("apart").mkdir()
    for name in listed:
        written(f"apart/{behind}{name}.yaml", "no config")

    assert check("apart") == (5, [], "no config there to check\n")


def test_where_there_is_nothing_to_check_the_exit_code_is_5() -> None:
    Path("empty").mkdir()

    assert check("empty") == (5, [], "no config there to check\n")
    assert check("empty", "--format", "json") == (5, ["[]"], "")
    assert check("empty", written("a.yaml", FINE)) == (
        0,
        [],
        "no config in empty\n1 file checked: 0 errors, 0 warnings\n",
    )


def test_with_strict_a_warning_refuses_as_well() -> None:
    warned = "  transforms: [{type: script, source: {type: inline, code: '1'}}]\n"

    for text, loosely, strictly in [(FINE, 0, 0), (FINE + warned, 0, 1), (WRONG, 1, 1)]:
        config = written("a.yaml", text)
        assert (check(config)[0], check(config, "--strict")[0]) == (loosely, strictly)


def test_without_anything_named_it_is_a_mistake_on_the_command_line() -> None:
    assert check()[0] == 2


def test_a_root_outside_of_the_data_directory_is_told_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plant.yaml").write_text("[]")
    (tmp_path / "plant.connections.yaml").write_text("disk: { type: file, root: archive }")

    fine = CliRunner().invoke(commands, ["check", "plant.yaml"])
    wrong = CliRunner().invoke(commands, ["check", "plant.yaml", "--data-dir", "data"])

    told = wrong.stdout
    assert (fine.exit_code, wrong.exit_code) == (0, 1)
    assert told.startswith("plant.connections.yaml:1:27: disk.root: the root 'archive' is ")
    assert "(write 'data/archive': a relative root starts at the working directory)" in told


def test_an_output_that_leads_into_the_store_is_told_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output = "{ type: file, connection: disk, path: store/0/store.db }"
    (tmp_path / "plant.yaml").write_text(f"- {{ inputs: [{{ type: http }}], outputs: [{output}] }}")
    (tmp_path / "plant.connections.yaml").write_text("disk: { type: file, root: data }")
    (tmp_path / "data" / "store").mkdir(parents=True)
    command = ["check", "plant.yaml", "--data-dir", "data"]

    without_a_store = CliRunner().invoke(commands, command)
    (tmp_path / "data" / "store" / "0").mkdir()
    wrong = CliRunner().invoke(commands, command)

    told = wrong.stdout
    assert (without_a_store.exit_code, wrong.exit_code) == (0, 1)
    assert told.startswith("plant.yaml:1:")
    assert "/data/store/0/store.db' is where the server keeps what is durable" in told


INTO_STORE = """
state: {{ seen: {{ {bucket} }} }}
pipelines:
- id: first
  inputs: [{{ type: http{durable} }}]
  outputs: [{{ type: http, url: "http://there.example/"{queue} }}]
  {letters}
- inputs: [{{ type: http }}]
  outputs: [{{ type: file, connection: disk, path: store/0/mine }}]
"""


@pytest.mark.parametrize(
    ("kept", "code"),
    [
        ({}, 0),
        ({"bucket": "durable: true"}, 1),
        ({"durable": ", durable: true"}, 1),
        ({"queue": ", queue: {}"}, 1),
        ({"letters": "dead_letters: true"}, 1),
    ],
)
def test_an_output_that_leads_to_where_the_store_is_going_to_be_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: dict[str, str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = dict.fromkeys(("bucket", "durable", "queue", "letters"), "")
    (tmp_path / "plant.yaml").write_text(INTO_STORE.format(**plain | kept))
    (tmp_path / "plant.connections.yaml").write_text("disk: { type: file, root: data }")

    result = CliRunner().invoke(commands, ["check", "plant.yaml", "--data-dir", "data"])

    assert result.exit_code == code, result.stdout
    assert ("is where the server keeps what is durable" in result.stdout) == bool(code)
    assert not (tmp_path / "data").exists()
