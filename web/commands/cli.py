"""The command line: a command for each thing to do, and the bare `headrace --config FILE`.

Exit codes: 0 fine, 1 refused, failed, or the server cannot start, 2 usage, 5 nothing there to look at.
Only click is imported here; each command imports what it needs, so that `check` never waits for a web
server.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import click

from headrace.web.commands import authoringcommands
from headrace.web.commands.arguments import ADDRESS, FILE, HostPort, format_option, told_of_failing
from headrace.web.commands.collecting import collect_late
from headrace.web.commands.lettercommands import dead_letters
from headrace.web.commands.storecommands import store

FILES = ("config", "connections", "settings", "tests")
"""The files that are written by hand, and have a schema."""


class Commands(click.Group):
    """A group whose command, when none is named, is `serve`: the established form."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `serve` before options that are its own."""
        of_group = {name for param in self.get_params(ctx) for name in param.opts}
        if not args or (args[0].startswith("-") and args[0] not in of_group):
            args = ["serve", *args]
        return super().parse_args(ctx, args)


def _tell_version(ctx: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    """Print the version, and those of the tables of zones and of SQLite."""
    if not is_asked or ctx.resilient_parsing:
        return
    import sqlite3
    from importlib.metadata import version

    from headrace.web.commands.zonetables import tables

    told = f"headrace {version('headrace')}\nzones {tables()}\nSQLite {sqlite3.sqlite_version}"
    click.echo(told)
    ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version, and those of the tables of zones and of SQLite, and exit.",
)
def commands() -> None:
    """Run data pipelines that a config describes.

    Without a command the server is run: `headrace --config FILE` is `headrace serve --config FILE`.
    """


for each in authoringcommands.ALL:
    commands.add_command(each)
commands.add_command(dead_letters)
commands.add_command(store)


@commands.command()
@click.option("--config", type=FILE, help="Pipelines to start with; JSON, or YAML by extension.")
@click.option("--connections", type=FILE, help="Connections, if not in the file beside the config.")
@click.option(
    "--secrets", type=FILE, help="What ${NAME} stands for where the environment is silent."
)
@click.option("--data-dir", type=FILE, help="Root of all files that are written.")
@click.option(
    "--server-config",
    type=FILE,
    help="Who may reach the server, and how; JSON, or YAML by extension.",
)
@click.option(
    "--listen",
    type=HostPort(),
    default=ADDRESS,
    show_default=True,
    envvar="HEADRACE_LISTEN",
    show_envvar=True,
    help="Address to serve on.",
)
@click.option("--debug", is_flag=True, help="Log more.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    envvar="HEADRACE_LOG_FORMAT",
    show_envvar=True,
    help="Lines for people, or one JSON object a line.",
)
def serve(
    config: Path | None,
    connections: Path | None,
    secrets: Path | None,
    data_dir: Path | None,
    server_config: Path | None,
    listen: tuple[str, int],
    debug: bool,
    log_format: Literal["text", "json"],
) -> None:
    """Run the server."""
    from headrace.web.commands.serve import bound
    from headrace.web.commands.serve import serve as run
    from headrace.web.files.reading import Files

    files = Files(config, connections, secrets, server_config)
    listening = partial(bound, *listen)
    sys.exit(run(files, listening, data_dir=data_dir, is_debug=debug, log_format=log_format))


@commands.command()
@click.argument("files", nargs=-1, type=FILE)
@click.option(
    "--connections", type=FILE, help="Connections, if not in the file beside each config."
)
@click.option(
    "--secrets", type=FILE, help="What ${NAME} stands for where the environment is silent."
)
@click.option("--data-dir", type=FILE, help="Root of all files that a server would write.")
@click.option("--server-config", type=FILE, help="A file of server settings to look at as well.")
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@format_option("Text for people, or one JSON array.")
def check(
    files: Sequence[Path],
    connections: Path | None,
    secrets: Path | None,
    data_dir: Path | None,
    server_config: Path | None,
    strict: bool,
    form: str,
) -> None:
    """Tell all that is wrong with configs, offline.

    Of a directory it takes the *.yaml, *.yml and *.json right in it, but for hidden files and for
    those that stand beside configs: connections, layout, secrets, server, settings and tests, which
    are called so (settings.yaml) or so behind another name and a point (plant.settings.yaml).
    For `-` it reads standard input: JSON if that begins with { or [, else YAML.

    Exit codes: 0 fine, 1 refused (with --strict also warned of), 2 usage, 5 no config there.
    """
    from headrace.web.commands.check import check as run

    if not files and server_config is None:
        raise click.UsageError("Missing argument 'FILES...'.")
    with told_of_failing("printed"):
        sys.exit(
            run(
                files,
                connections,
                secrets,
                server_config,
                data_dir=data_dir,
                is_json=form == "json",
                is_strict=strict,
                piped=_piped_config,
            )
        )


@commands.command()
@click.argument("file", type=click.Choice(FILES), default="config")
def schema(file: str) -> None:
    """Print the JSON Schema of a file, for editors: of a config, if nothing else is named."""
    from headrace.web.commands.printing import print_json_text

    with told_of_failing("printed"):
        print_json_text(printed(file))


def printed(file: str) -> str:
    """Return the schema of one of `FILES` as text, the same each time."""
    from headrace.authoring.configfiles import catalogue
    from headrace.authoring.language.testfile import TestFileShape
    from headrace.compiler.describe.editors import config_schema, connections_schema, record_schema
    from headrace.web.auth.settingsfile import ServerSettings

    schemas = {
        "config": lambda: config_schema(catalogue()),
        "connections": lambda: connections_schema(catalogue()),
        "settings": lambda: record_schema(ServerSettings, "headrace settings"),
        "tests": lambda: record_schema(TestFileShape, "headrace tests"),
    }
    return json.dumps(schemas[file](), indent=2, ensure_ascii=False)


@commands.command("hash-password")
def hash_password() -> None:
    """Print the hash of a password, for the `password_hash` of an account.

    The password is asked for; from a pipe it is read, one line.
    """
    from headrace.web.auth.passwords import MOST_PASSWORD, hashed

    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = _piped_password()
    if not 0 < len(password) <= MOST_PASSWORD:
        raise click.ClickException(f"a password has 1 to {MOST_PASSWORD:,} characters")
    click.echo(hashed(password))


def _piped_config() -> bytes:
    from headrace.compiler.text.decoding import LARGEST

    return b"" if sys.stdin is None else sys.stdin.buffer.read(LARGEST + 1)


def _piped_password() -> str:
    line, more = sys.stdin.buffer.readline(), sys.stdin.buffer.read(1)
    if more:
        raise click.ClickException("a password is one line, and there is more than one")
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeError:
        raise click.ClickException("the password is not UTF-8") from None


def main() -> None:
    """Run the command line."""
    _open_standard_streams()
    collect_late()
    commands(prog_name="headrace")


def _open_standard_streams() -> None:
    """Have streams that whoever started us has closed lead nowhere.

    Else the first sockets got their numbers, and what is meant for an error stream went to a client.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
