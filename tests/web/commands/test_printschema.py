"""`headrace schema`: what it prints, and which of the examples of errors it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from headrace.authoring.configfiles import catalogue
from headrace.authoring.testing.suites import load_suite
from headrace.compiler.config.program import load_program
from headrace.compiler.text.documents import Unreadable, read, read_file
from headrace.web.commands.cli import FILES, commands, printed
from headrace.web.files.reading import Files, load

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "errors"
UNSEEN = {
    # Between values.
    "cycle",
    "duplicate",
    "missing-upstream",
    "no-bound",
    "no-state",
    "no-trigger",
    "nothing-to-acknowledge",
    "outside-root",
    "scalar-in-the-way",
    "second-input",
    "unknown-bucket",
    "unknown-column",
    "unknown-connection",
    # Of a text that means something in itself.
    "illegal-header",
    "not-a-hash",
    "not-a-node",
    "not-a-subject",
    "not-a-template",
    "not-a-time-format",
    "not-a-user-name",
    "not-an-address",
    "not-an-identifier",
    "not-a-pattern",
    "not-compiled",
    "zero-divisor",
    # Of tests, which name what is in a config and write time as text.
    "ambiguous",
    "nameless",
    "not-a-fault",
    "not-a-matcher",
    "not-a-time",
    "not-an-input",
    "not-captured",
    "not-marbles",
    "past-the-end",
    "unknown-metadata",
    "unknown-pipeline",
}
"""Codes of what is refused and no schema can know of."""

VALIDATORS = {file: jsonschema.Draft202012Validator(json.loads(printed(file))) for file in FILES}


def shape_of(file: Path) -> str:
    """Return what a file is."""
    if file.stem.endswith(".connections"):
        return "connections"
    if file.stem.endswith(".tests"):
        return "tests"
    return "settings" if file.stem.endswith(".server") else "config"


def is_satisfying(file: Path, value: Any) -> bool:
    return VALIDATORS[shape_of(file)].is_valid(value)


def read_examples() -> dict[str, list[tuple[Path, Any]]]:
    """Return the examples that can be read, by code: each with what stands beside it."""
    found: dict[str, list[tuple[Path, Any]]] = {}
    for file in sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*.json")]):
        try:
            value = read_file(file).value
        except Unreadable:
            continue
        found.setdefault(file.name.partition(".")[0], []).append((file, value))
    return found


def is_refused(code: str) -> bool:
    """Return whether `headrace check` finds more in an example than something to remark."""
    suites = [file for file, _ in READ[code] if shape_of(file) == "tests"]
    if suites:
        return load_suite(suites[0], catalogue()).tests is None
    [file] = [file for file, _ in READ[code] if shape_of(file) != "connections"]
    files = Files(settings=file) if shape_of(file) == "settings" else Files(file)
    return load(files, catalogue()).is_refused


READ = read_examples()


@pytest.mark.parametrize("code", READ)
def test_the_schema_refuses_what_is_refused_unless_the_code_is_one_that_no_schema_can_see(
    code: str,
) -> None:
    wrong = [file.name for file, value in READ[code] if not is_satisfying(file, value)]

    assert bool(wrong) is (is_refused(code) and code not in UNSEEN)


def test_every_code_that_is_listed_refuses_an_example() -> None:
    assert [code for code in sorted(UNSEEN) if code not in READ or not is_refused(code)] == []


@pytest.mark.parametrize("file", FILES)
def test_a_schema_is_printed_as_one_of_2020_12(file: str) -> None:
    said = CliRunner().invoke(commands, ["schema", file])

    assert said.exit_code == 0
    schema = json.loads(said.stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == f"headrace {file}"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_without_a_name_it_is_that_of_a_config() -> None:
    assert CliRunner().invoke(commands, ["schema"]).stdout == printed("config") + "\n"


def test_another_file_is_wrong_usage() -> None:
    said = CliRunner().invoke(commands, ["schema", "secrets"])

    assert said.exit_code == 2
    assert "'config', 'connections', 'settings'" in said.stderr


@pytest.mark.long
def test_each_process_prints_the_same() -> None:
    command = [str(Path(sys.executable).with_name("headrace")), "schema"]

    said = [
        subprocess.run(
            command, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout.decode()
        for seed in ("1", "2")
    ]

    assert said == [printed("config") + "\n"] * 2


def test_settings_are_those_that_the_server_reads() -> None:
    validator = VALIDATORS["settings"]

    validator.validate({"auth": {"type": "basic", "users": {"ann": {"password": "${ANN}"}}}})
    assert not validator.is_valid({"auth": {"type": "basic", "users": {}}, "sesion": {}})
    assert not validator.is_valid({"auth": {"type": "basc"}})


def test_the_page_names_each_of_them_and_shows_a_config_that_loads() -> None:
    page = (ROOT / "docs" / "editors.md").read_text()
    [text] = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    document = read(text, None, "yaml")

    program, said = load_program(document, catalogue())

    assert program is not None
    assert said == []
    assert text.startswith("# yaml-language-server: $schema=headrace.schema.json\n")
    VALIDATORS["config"].validate(document.value)
    asked = re.findall(r"^\$ headrace schema(?: (\w+))? > headrace\S*$", page, re.MULTILINE)
    assert [each or "config" for each in asked] == [*FILES]
