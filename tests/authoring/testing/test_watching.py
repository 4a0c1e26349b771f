"""What depends on a file is run again when the file changes, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.authoring.testing.runs import RunOptions
from headrace.authoring.testing.watching import watch
from headrace.web.commands.cli import commands
from headrace.web.commands.testing import watch_tests
from tests.authoring.testing.suite import CONFIG, written

PASSES = (
    "tests:\n  it:\n    given: {line: {1s: {temp: 90}}}\n    expect: {line: {1s: {high: 90}}}\n"
)


def runs(folder: Path, *changes: Callable[[], object]) -> list[tuple[list[str], list[str]]]:
    """Watch a folder while it changes; return what changed each time, and what came of which test."""

    def looks() -> Iterator[None]:
        for change in changes:
            change()
            yield

    return [
        (
            [each.name for each in run.changed],
            [f"{Path(each.file).parent.name}::{each.name} {each.outcome}" for each in run.outcomes],
        )
        for run in watch([folder], RunOptions(jobs=1), looks())
    ]


def nothing() -> None:
    pass


def test_nothing_is_run_again_while_nothing_changes(tmp_path: Path):
    (folder := tmp_path / "a").mkdir()
    written(folder, PASSES)

    assert runs(folder, *[nothing] * 25) == [([], ["a::it passed"])]


@pytest.mark.parametrize(
    ("name", "text", "outcome"),
    [
        ("config.tests.yaml", PASSES.replace("high: 90", "high: 91"), "it failed"),
        ("config.yaml", CONFIG.replace("value: 80", "value: 95"), "it failed"),
        ("config.connections.yaml", "bus: {type: radish}\n", " error"),
    ],
)
def test_what_was_read_from_a_file_that_changes_is_run_again(
    tmp_path: Path, name: str, text: str, outcome: str
):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, PASSES)

    first, again = runs(tmp_path, lambda: (tmp_path / "b" / name).write_text(text), nothing)

    assert first == ([], ["a::it passed", "b::it passed"])
    assert again[0] == [name]
    [came] = again[1]
    assert came.startswith("b::")
    assert came.endswith(outcome)


def test_a_file_beside_the_config_that_was_not_there_is_noticed(tmp_path: Path):
    file = written(tmp_path, PASSES)
    connections = tmp_path / "config.connections.yaml"
    text = connections.read_text()
    connections.unlink()

    first, again = runs(tmp_path, lambda: connections.write_text(text))

    assert first[1] == [f"{tmp_path.name}::{file} error"]
    assert again == (["config.connections.yaml"], [f"{tmp_path.name}::it passed"])


def test_a_file_of_messages_is_watched(tmp_path: Path):
    messages = tmp_path / "some.ndjson"
    messages.write_text('{"temp": 90}\n')
    written(tmp_path, PASSES.replace("{1s: {temp: 90}}", "{$file: some.ndjson, $from: 1s}"))

    first, again = runs(tmp_path, lambda: messages.write_text('{"temp": 9}\n'))

    assert first[1] == [f"{tmp_path.name}::it passed"]
    assert again == (["some.ndjson"], [f"{tmp_path.name}::it failed"])


def test_scripts_and_what_they_import_are_watched(tmp_path: Path):
    for name, text in {
        "main.rhai": 'import "other" as other;\nmsg.temp = other::of(msg.temp);\nemit(msg);',
        "other.rhai": "fn of(temp) { temp }",
    }.items():
        (tmp_path / name).write_text(text)
    config = (
        "- id: line\n  inputs: [{type: http}]\n"
        "  transforms: [{type: script, source: {type: file, path: main.rhai}}]\n"
    )
    written(tmp_path, PASSES.replace("high: 90", "temp: 90"), config)

    first, again = runs(
        tmp_path, lambda: (tmp_path / "other.rhai").write_text("fn of(temp) { temp + 1 }")
    )

    assert first[1] == [f"{tmp_path.name}::it passed"]
    assert again == (["other.rhai"], [f"{tmp_path.name}::it failed"])


def test_a_new_file_of_tests_is_found_and_one_that_is_gone_forgotten(tmp_path: Path):
    (folder := tmp_path / "a").mkdir()
    written(folder, PASSES)
    (other := tmp_path / "b").mkdir()

    found = runs(
        tmp_path,
        lambda: written(other, PASSES),
        *[nothing] * 9,
        (other / "config.tests.yaml").unlink,
        *[nothing] * 9,
    )

    assert found == [([], ["a::it passed"]), ([], ["b::it passed"])]


def test_the_command_tells_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = written(tmp_path, PASSES)

    watch_tests(
        [tmp_path],
        RunOptions(jobs=1),
        (file.write_text(PASSES.replace("high: 90", "high: 9")) and None for _ in range(1)),
    )

    said = capsys.readouterr().out
    assert said.count("1 passed") == 1
    assert f"\n\n{file} changed\nFAIL  it " in said
    assert said.splitlines()[-1].startswith("1 failed")


@pytest.mark.parametrize("option", ["--update", "--junit=x", "--format=json", "-j2"])
def test_who_watches_does_nothing_else(option: str):
    result = CliRunner().invoke(commands, ["test", "--watch", option], env={"CI": None})

    assert result.exit_code == 2
    assert "--watch goes with -k, -x and --no-why, and with no other option." in result.output
