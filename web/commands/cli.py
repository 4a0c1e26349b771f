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
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import click

_ADDRESS = "127.0.0.1:6767"
_FILE = click.Path(path_type=Path)
FILES = ("config", "connections", "settings", "tests")
"""The files that are written by hand, and have a schema."""


class HostPort(click.ParamType[tuple[str, int]]):
    """``HOST:PORT``; an IPv6 host stands in brackets."""

    name = "host:port"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return host and port."""
        host, _, port = str(value).rpartition(":")
        if (
            not host
            or not port.isascii()
            or not port.isdigit()
            or len(port) > 5
            or int(port) > 65535
        ):
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return host.removeprefix("[").removesuffix("]"), int(port)


class Length(click.ParamType[int]):
    """A duration as tests write it, in whole seconds: ``90s``, ``10m``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the seconds."""
        from headrace.authoring.language.durations import A_DURATION, NotADuration, seconds

        if isinstance(value, int):
            return value
        try:
            found = int(seconds(value))
        except NotADuration:
            found = 0
        if not 1 <= found <= 86_400:
            self.fail(f"{value!r} is not {A_DURATION}, from 1s to 1d", param, ctx)
        return found


class Size(click.ParamType[int]):
    """A number of bytes: ``512KiB``, ``64MiB``, ``1GiB``."""

    name = "size"
    units = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        if isinstance(value, int):
            return value
        digits = value.rstrip("BGKMi")
        size = 0
        if digits.isascii() and digits.isdigit() and len(digits) <= 10:
            size = int(digits) * self.units.get(value[len(digits) :], 0)
        if not 1 <= size <= 2**30:
            self.fail(f"{value!r} is not a size such as 64MiB, up to 1GiB", param, ctx)
        return size


class Commands(click.Group):
    """A group whose command, when none is named, is `serve`: the established form."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `serve` before options that are its own."""
        of_group = {name for param in self.get_params(ctx) for name in param.opts}
        if not args or (args[0].startswith("-") and args[0] not in of_group):
            args = ["serve", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headrace", message="headrace %(version)s")
def commands() -> None:
    """Run data pipelines that a config describes.

    Without a command the server is run: `headrace --config FILE` is `headrace serve --config FILE`.
    """


@commands.command()
@click.option("--config", type=_FILE, help="Pipelines to start with; JSON, or YAML by extension.")
@click.option(
    "--connections", type=_FILE, help="Connections, if not in the file beside the config."
)
@click.option(
    "--secrets", type=_FILE, help="What ${NAME} stands for where the environment is silent."
)
@click.option("--data-dir", type=_FILE, help="Root of all files that are written.")
@click.option(
    "--server-config",
    type=_FILE,
    help="Who may reach the server, and how; JSON, or YAML by extension.",
)
@click.option(
    "--listen",
    type=HostPort(),
    default=_ADDRESS,
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
    from headrace.web.commands.serve import serve as run
    from headrace.web.files.reading import Files

    files = Files(config, connections, secrets, server_config)
    sys.exit(run(files, *listen, data_dir=data_dir, is_debug=debug, log_format=log_format))


@commands.command()
@click.argument("files", nargs=-1, type=_FILE)
@click.option(
    "--connections", type=_FILE, help="Connections, if not in the file beside each config."
)
@click.option(
    "--secrets", type=_FILE, help="What ${NAME} stands for where the environment is silent."
)
@click.option("--data-dir", type=_FILE, help="Root of all files that a server would write.")
@click.option("--server-config", type=_FILE, help="A file of server settings to look at as well.")
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or one JSON array.",
)
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
    try:
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
    except BrokenPipeError:
        raise  # click ends without a word
    except OSError as cause:
        raise click.ClickException(f"cannot be printed: {cause.strerror}") from cause


@commands.command("test")
@click.argument("paths", nargs=-1, type=_FILE)
@click.option(
    "-k",
    "words",
    multiple=True,
    metavar="WORDS",
    help="Only tests with all these words in file::name or among their tags; any of several -k.",
)
@click.option("-x", "stops", is_flag=True, help="Stop at the first that fails.")
@click.option(
    "-j",
    "jobs",
    type=click.IntRange(min=1),
    help="How many processes; left out: one, or for 200 tests and more one for each core.",
)
@click.option(
    "--update",
    "updates",
    is_flag=True,
    help="Write timelines that differ as they came, print the change, and run. Not where CI is set.",
)
@click.option(
    "--watch",
    "watches",
    is_flag=True,
    help="Go on, and run again what depends on a file that changes, until ctrl-C.",
)
@click.option(
    "--coverage",
    "counts",
    is_flag=True,
    help="Tell which branches of the configs no test has taken; each test is played once more for it.",
)
@click.option(
    "--fail-under",
    type=float,
    metavar="PERCENT",
    help="With --coverage: fail if fewer of 100 branches were taken.",
)
@click.option("--no-why", is_flag=True, help="Do not tell why what never came was dropped.")
@click.option("--junit", type=_FILE, help="Write the results to a file, as JUnit has them.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or one JSON array; with --coverage an object that has it.",
)
def test(
    paths: Sequence[Path],
    words: Sequence[str],
    stops: bool,
    jobs: int | None,
    updates: bool,
    watches: bool,
    counts: bool,
    fail_under: float | None,
    no_why: bool,
    junit: Path | None,
    form: str,
) -> None:
    """Run the tests of configs, offline and in virtual time.

    A path is a file of tests, a config (its tests stand beside it: config.tests.yaml beside
    config.yaml) or a directory, of which all are meant, but for hidden ones. Without a path it is
    this directory.

    Exit codes: 0 fine, 1 failed, refused or covered less than --fail-under, 2 usage, 5 no test there
    that is meant.
    """
    from headrace.authoring.testing.runs import RunOptions
    from headrace.web.commands.testing import run_tests as run
    from headrace.web.commands.testing import watch_tests

    if updates and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise click.UsageError("--update writes files, and is refused where CI is set.")
    if fail_under is not None and not (counts and 0 <= fail_under <= 100):
        raise click.UsageError("--fail-under takes 0 to 100, and goes with --coverage.")
    if watches and (counts or updates or junit or form == "json" or jobs not in (None, 1)):
        raise click.UsageError("--watch goes with -k, -x and --no-why, and with no other option.")
    is_terminal = form == "text" and sys.stdout.isatty()
    options = RunOptions(
        tuple(words),
        stops=stops,
        jobs=1 if watches else jobs,
        tells_why=not no_why,
        counts=counts,
        style="terminal" if is_terminal else "plain",
    )
    try:
        if watches:
            with suppress(KeyboardInterrupt):
                watch_tests(paths or [Path()], options)
            return
        sys.exit(
            run(
                paths or [Path()],
                options,
                is_json=form == "json",
                junit_file=junit,
                updates=updates,
                fail_under=fail_under or 0.0,
            )
        )
    except BrokenPipeError:
        raise  # click ends without a word
    except OSError as cause:
        raise click.ClickException(f"cannot be written: {cause.strerror}") from cause


@commands.command("run")
@click.argument("config", type=_FILE)
@click.argument("pipeline", required=False)
@click.option("--time", metavar="FIELD", help="The field that tells when a message comes.")
@click.option("--replies", type=_FILE, help="What the servers of `http` transforms answer.")
@click.option("--allow-http", is_flag=True, help="Let `http` transforms ask their servers.")
def run_as_filter(
    config: Path, pipeline: str | None, time: str | None, replies: Path | None, allow_http: bool
) -> None:
    """Run a config as a filter: messages in on lines, what comes of them out on lines.

    The messages are those of PIPELINE, with all that it reads; without it, of the one that nobody
    reads. They come at once, or with --time at the moments that they tell, in virtual time: a year
    of windows takes as long as its messages do. Connections are not used and outputs write nothing.

    Exit codes: 0 fine, 1 refused or something failed, 2 usage, 5 no such pipeline.
    """
    from headrace.web.commands.filtercommand import run

    code = run(
        config,
        pipeline,
        sys.stdin.buffer,
        sys.stdout.buffer,
        time=time,
        replies=replies,
        asks=allow_http,
    )
    sys.exit(code)


@commands.command()
@click.argument("config", type=_FILE)
@click.argument("pipelines", nargs=-1, metavar="[PIPELINE]...")
@click.option("--code", "with_code", is_flag=True, help="Print each generated loop as well.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="Text for people, one JSON array, or a graph.",
)
def explain(
    config: Path,
    pipelines: Sequence[str],
    with_code: bool,
    form: Literal["text", "json", "mermaid", "dot"],
) -> None:
    """Tell what a config is built to, and what it promises.

    For each PIPELINE, or for all: where its parts stand, what is left out, which transforms are one
    generated loop, what waits in memory, what is acknowledged, lost and kept. No connection is opened
    and no secret resolved. JSON always has the code of the loops.

    Exit codes: 0 fine, 1 refused, 2 usage, 5 no such pipeline.
    """
    from headrace.web.commands.explaining import explain as run

    if with_code and form not in ("text", "json"):
        raise click.UsageError("--code goes with the formats text and json.")
    try:
        sys.exit(run(config, pipelines, form, with_code=with_code))
    except BrokenPipeError:
        raise  # click ends without a word
    except OSError as cause:
        raise click.ClickException(f"cannot be printed: {cause.strerror}") from cause


@commands.command()
@click.option(
    "--url",
    default=f"http://{_ADDRESS}",
    show_default=True,
    envvar="HEADRACE_URL",
    show_envvar=True,
    help="The server.",
)
@click.option(
    "--pipeline",
    "pipelines",
    multiple=True,
    metavar="ID",
    help="Only what arrives at this pipeline; any of several.",
)
@click.option(
    "--for", "length", type=Length(), default="10m", show_default=True, help="How long at most."
)
@click.option(
    "--max", "size", type=Size(), default="64MiB", show_default=True, help="How many bytes at most."
)
@click.option(
    "--redact",
    multiple=True,
    metavar="PATH",
    help="A path in messages, such as patient.name, or of metadata ($meta.topic), whose values are "
    "replaced by digits that are the same for equal ones. With any, replies of servers are left out.",
)
def capture(
    url: str, pipelines: Sequence[str], length: int, size: int, redact: Sequence[str]
) -> None:
    """Write what arrives at a server's inputs, to play it again: with `headrace diff`, or in a test.

    It goes to standard output, a line for each thing that happens. Pipelines wait for nobody: what
    this does not take in time is dropped, and counted in the capture. Ctrl-C ends it in order.

    Only an admin may: HEADRACE_TOKEN has the token, or HEADRACE_USER and HEADRACE_PASSWORD name and
    password.

    Exit codes: 0 fine, 1 no server that answers, or it refuses, 2 usage, 5 nothing has arrived.
    """
    from headrace.web.commands.capturing import Wanted
    from headrace.web.commands.capturing import capture as run

    wanted = Wanted(url, pipelines, length, size, redact)
    try:
        sys.exit(run(wanted, sys.stdout.buffer, sys.stderr))
    except BrokenPipeError:
        raise  # click ends without a word
    except OSError as cause:
        raise click.ClickException(f"cannot be written: {cause.strerror}") from cause


@commands.command()
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@click.option("--capture", type=_FILE, help="Play what `headrace capture` has written with both.")
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="PATH",
    help="A path in messages that makes no difference, such as meta.host.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or one JSON object.",
)
def diff(old: Path, new: Path, capture: Path | None, ignored: Sequence[str], form: str) -> None:
    """Compare two configs, offline: what a revert from OLD to NEW keeps, restarts, adds and removes.

    With --capture, both are played on what arrived, in virtual time, and what comes of it is compared. A
    timestamp that is its batch's own moment counts as equal to the other's. Outputs write nothing;
    servers of `http` transforms answer as they did in the capture.

    Exit codes: 0 the same, 1 different or refused, 2 usage, 5 nothing there to compare.
    """
    from headrace.web.commands.diff import diff as run

    if ignored and capture is None:
        raise click.UsageError("--ignore goes with --capture.")
    sys.exit(run(old, new, capture, ignored, is_json=form == "json"))


@commands.command()
@click.argument("file", type=click.Choice(FILES), default="config")
def schema(file: str) -> None:
    """Print the JSON Schema of a file, for editors: of a config, if nothing else is named."""
    try:
        click.echo(printed(file))
    except BrokenPipeError:
        raise  # click ends without a word
    except OSError as cause:
        raise click.ClickException(f"cannot be printed: {cause.strerror}") from cause


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
    commands(prog_name="headrace")


def _open_standard_streams() -> None:
    """Have streams that whoever started us has closed lead nowhere.

    Else the first sockets got their numbers, and what is meant for an error stream went to a client.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
