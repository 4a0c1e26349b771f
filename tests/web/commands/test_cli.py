"""The command line: which command is meant, and what an address is."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from headrace.web.commands.arguments import HostPort
from headrace.web.commands.cli import commands
from headrace.web.commands.collecting import OF_A_PLAY, ManyObjects


def asked(*arguments: str) -> tuple[str, dict[str, Any]]:
    """Return the command that a line means, and its options."""
    context = click.Context(commands, info_name="headrace")
    commands.parse_args(context, [*arguments])
    name, *rest = context._protected_args + context.args
    command = commands.get_command(context, name)
    assert command is not None
    with command.make_context(name, rest) as made:
        return name, made.params


@pytest.mark.parametrize("bare", [(), ("serve",)])
def test_without_a_command_the_server_is_run(bare: tuple[str, ...]) -> None:
    command, options = asked(*bare, "--config", "a.yaml", "--data-dir", "d", "--debug")

    assert command == "serve"
    assert options == {
        "config": Path("a.yaml"),
        "connections": None,
        "secrets": None,
        "data_dir": Path("d"),
        "server_config": None,
        "listen": ("127.0.0.1", 6767),
        "debug": True,
        "log_format": "text",
    }


def test_nothing_at_all_runs_the_server() -> None:
    assert asked()[0] == "serve"


def test_check_is_not_the_server() -> None:
    command, options = asked("check", "a.yaml", "b.yaml")

    assert command == "check"
    assert options["files"] == (Path("a.yaml"), Path("b.yaml"))


def test_the_environment_supplies_the_address_and_the_option_wins(monkeypatch) -> None:
    monkeypatch.setenv("HEADRACE_LISTEN", "0.0.0.0:80")

    assert asked()[1]["listen"] == ("0.0.0.0", 80)
    assert asked("--listen", "127.0.0.1:81")[1]["listen"] == ("127.0.0.1", 81)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:6767", ("127.0.0.1", 6767)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_address_is_host_and_port(text: str, address: tuple[str, int]) -> None:
    assert HostPort().convert(text, None, None) == address


@pytest.mark.parametrize("text", ["", "6767", ":6767", "host", "host:", "host:x", "host:65536"])
def test_what_is_no_address_is_wrong_usage(text: str) -> None:
    result = CliRunner().invoke(commands, ["--listen", text])

    assert result.exit_code == 2
    assert "is not HOST:PORT" in result.stderr


@pytest.mark.parametrize("line", [["--nope"], ["nope"], ["--config", "a.yaml", "check"]])
def test_wrong_usage_is_exit_code_2(line: list[str]) -> None:
    assert CliRunner().invoke(commands, line).exit_code == 2


def test_help_names_both_commands() -> None:
    shown = CliRunner().invoke(commands, ["--help"])

    assert shown.exit_code == 0
    assert "check" in shown.output
    assert "serve" in shown.output


def test_a_command_that_makes_many_objects_leaves_the_collector_as_it_was(tmp_path: Path):
    during = []

    @click.command(cls=ManyObjects)
    def command() -> None:
        during.append(gc.get_threshold())
        raise click.ClickException("it fails")

    usual = gc.get_threshold()
    result = CliRunner().invoke(command, [])

    assert result.exit_code == 1
    assert (during[0][0], gc.get_threshold()) == (OF_A_PLAY, usual)
