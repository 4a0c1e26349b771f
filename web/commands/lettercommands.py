"""`headrace dead-letters`: list, show, replay, delete and export what a server could not do.

As in `cli`, only click is imported here; each command imports what it needs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from headrace.web.commands.arguments import ADDRESS, FILE, format_option, told_of_failing
from headrace.web.commands.exitcodes import NOTHING, REFUSED

_Command = TypeVar("_Command", bound=Callable[..., Any])


class StageType(click.ParamType[str]):
    """One of the stages that dead letters are of."""

    name = "stage"

    @property
    def stages(self) -> click.Choice[str]:
        """Those that there are, which are not imported before they are asked for."""
        from headrace.compiler.runtime.monitoring.letterfigures import LETTER_STAGES

        return click.Choice(LETTER_STAGES)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the stage."""
        return self.stages.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return all of them, for the help."""
        return self.stages.get_metavar(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return those that begin so."""
        return self.stages.shell_complete(ctx, param, incomplete)


_URL = click.option(
    "--url",
    default=f"http://{ADDRESS}",
    show_default=True,
    envvar="HEADRACE_URL",
    show_envvar=True,
    help="The server.",
)
_STAGE = click.option("--stage", type=StageType(), help="Only those of this stage.")
_MESSAGE = click.option("--message", metavar="TEXT", help="Only those with exactly this message.")


class LetterIds(click.ParamType[tuple[int, ...]]):
    """Ids of dead letters, parted by commas."""

    name = "ids"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the ids."""
        if not isinstance(value, str):
            return tuple(value)
        found = value.split(",")
        if not all(each.isascii() and each.isdigit() and len(each) <= 18 for each in found):
            self.fail(f"{value!r} is not ids such as 17,18", param, ctx)
        return tuple(map(int, found))


class Rate(click.ParamType[float]):
    """How many a second: a finite number above 0."""

    name = "float"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        try:
            found = float(value)
        except ValueError:
            found = 0
        if not math.isfinite(found) or found <= 0:
            self.fail(f"{value!r} is not a number above 0, such as 100 or 0.5", param, ctx)
        return found


def _which(command: _Command) -> _Command:
    """Add the options that say which letters are meant."""
    for each in (
        click.option("--all", "is_all", is_flag=True, help="All of the pipeline."),
        _MESSAGE,
        _STAGE,
        click.option("--ids", type=LetterIds(), default=(), help="These, such as 17,18."),
    ):
        command = each(command)
    return command


@click.group("dead-letters")
def dead_letters() -> None:
    """List, show, replay, delete and export what a server could not do.

    HEADRACE_TOKEN has a token, or HEADRACE_USER and HEADRACE_PASSWORD name and password. Who may read
    may list; all else is for an admin.

    Exit codes: 0 fine, 1 no server that answers, it refuses, or something has failed again, 2 usage,
    5 nothing there that is meant.
    """


@dead_letters.command("list")
@click.argument("pipeline", required=False)
@_STAGE
@_MESSAGE
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How many of a PIPELINE at most, the newest ones.",
)
@_URL
@format_option("A table for people, or one JSON array.")
def list_letters(
    pipeline: str | None,
    stage: str | None,
    message: str | None,
    limit: int,
    url: str,
    form: str,
) -> None:
    """List what failed alike in all pipelines, or the dead letters of one."""
    from headrace.web.commands.letterrequests import Chosen, LetterServer, list_alike, list_of

    if pipeline is None and (stage is not None or message is not None):
        raise click.UsageError("--stage and --message go with a PIPELINE.")
    server, is_json = LetterServer(url), form == "json"
    with _told("printed"):
        if pipeline is None:
            sys.exit(list_alike(server, is_json=is_json))
        chosen = Chosen(pipeline, (), stage, message)
        sys.exit(list_of(server, chosen, limit, is_json=is_json))


@dead_letters.command()
@click.argument("pipeline")
@click.argument("id", type=click.IntRange(min=1))
@_URL
def show(pipeline: str, id: int, url: str) -> None:
    """Print one dead letter with its messages, as JSON."""
    from headrace.web.commands.letterrequests import LetterServer
    from headrace.web.commands.letterrequests import show as run

    with _told("printed"):
        sys.exit(run(LetterServer(url), pipeline, id, sys.stdout.buffer))


@dead_letters.command()
@click.argument("pipeline")
@_which
@_URL
def delete(
    pipeline: str,
    ids: tuple[int, ...],
    stage: str | None,
    message: str | None,
    is_all: bool,
    url: str,
) -> None:
    """Delete dead letters of a pipeline: those with --ids, those of --stage and --message, or --all.

    It asks nothing, and they cannot be had back.
    """
    from headrace.web.commands.letterrequests import Chosen, LetterServer
    from headrace.web.commands.letterrequests import delete as run

    _refuse_unclear(ids, stage, message, is_all=is_all)
    with _told("printed"):
        sys.exit(run(LetterServer(url), Chosen(pipeline, ids, stage, message)))


@dead_letters.command()
@click.argument("pipeline")
@_which
@click.option("--rate", type=Rate(), help="How many messages a second; 100 unless told.")
@click.option("--from", "source", metavar="ID", help="The pipeline whose dead letters they are.")
@click.option(
    "--component", type=int, help="The index of another transform, or output, to go into."
)
@click.option("--input-index", type=int, help="The index of an input where they arrive instead.")
@click.option(
    "--messages", type=FILE, help="A JSON array in the place of the messages of the one of --ids."
)
@click.option(
    "--dry-run", is_flag=True, help="Print what would become of the one of --ids, and do nothing."
)
@_URL
@format_option("Of a dry run: lines for people, or one JSON object.")
def replay(
    pipeline: str,
    ids: tuple[int, ...],
    stage: str | None,
    message: str | None,
    is_all: bool,
    rate: float | None,
    source: str | None,
    component: int | None,
    input_index: int | None,
    messages: Path | None,
    dry_run: bool,
    url: str,
    form: str,
) -> None:
    """Send dead letters once more through a pipeline, and wait until that is over.

    Those with --ids, those of --stage and --message, or --all. What goes through is deleted. Ctrl-C ends
    the wait, and not the replay.
    """
    from headrace.web.commands.letterrequests import Chosen, LetterServer, replay_options
    from headrace.web.commands.letterrequests import replay as run
    from headrace.web.commands.lettertrials import dry_run as show_only

    _refuse_unclear(ids, stage, message, is_all=is_all)
    if dry_run and len(ids) != 1:
        raise click.UsageError("--dry-run is of one dead letter: --ids with one id.")
    chosen = Chosen(pipeline, ids, stage, message)
    with _told("printed"):
        options = replay_options(rate, source, component, input_index, messages)
        if dry_run:
            sys.exit(show_only(LetterServer(url), chosen, options, is_json=form == "json"))
        sys.exit(run(LetterServer(url), chosen, options))


@dead_letters.command()
@click.argument("pipeline")
@_STAGE
@_MESSAGE
@click.option("-o", "--output", "file", type=FILE, help="A file to write; else standard output.")
@_URL
def export(
    pipeline: str, stage: str | None, message: str | None, file: Path | None, url: str
) -> None:
    """Write dead letters of a pipeline with their messages, the newest first, one JSON object a line.

    They may have secrets in them. A file is made for its owner alone, and one that is there stays as it
    is until all is written.
    """
    from headrace.web.commands.letterrequests import Chosen, LetterServer
    from headrace.web.commands.letterrequests import export as run
    from headrace.web.commands.ownfile import own_file

    server, chosen = LetterServer(url), Chosen(pipeline, (), stage, message)
    with _told("written"):
        if file is None:
            sys.exit(run(server, chosen, sys.stdout.buffer))
        with own_file(file) as out:
            code = run(server, chosen, out)
        sys.exit(code)


def _refuse_unclear(
    ids: tuple[int, ...], stage: str | None, message: str | None, *, is_all: bool
) -> None:
    """Refuse a command that does not say which, or says it twice."""
    if [bool(ids), stage is not None or message is not None, is_all].count(True) != 1:
        raise click.UsageError("Say which: --ids, or --stage and --message, or --all.")


@contextmanager
def _told(how: str) -> Iterator[None]:
    """Have it told in a line why a server does not do what it is asked."""
    from headrace.compiler.text.diagnostics import printable
    from headrace.web.commands.askingserver import NoSuchLetter, ServerRefuses

    try:
        with told_of_failing(how):
            yield
    except ServerRefuses as cause:
        print(printable(str(cause)), file=sys.stderr)
        sys.exit(NOTHING if isinstance(cause, NoSuchLetter) else REFUSED)
