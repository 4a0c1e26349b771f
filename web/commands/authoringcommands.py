"""The commands of who writes configs: test, run, explain, capture, diff.

As in `cli`, only click is imported here; each command imports what it needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import click
from click.core import ParameterSource

from headrace.web.commands.arguments import (
    ADDRESS,
    FILE,
    Length,
    Size,
    format_option,
    told_of_failing,
)
from headrace.web.commands.collecting import ManyObjects

MAX_MOMENTS = click.option(
    "--max-moments",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="How many moments may pass at which timers are due, beside 100 for each thing that is given.",
)


@click.command("test", cls=ManyObjects)
@click.argument("paths", nargs=-1, type=FILE)
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
@click.option("--junit", type=FILE, help="Write the results to a file, as JUnit has them.")
@format_option("Text for people, or one JSON array; with --coverage an object that has it.")
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
    with told_of_failing("written"):
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


@click.command("run")
@click.argument("config", type=FILE)
@click.argument("pipeline", required=False)
@click.option("--time", metavar="FIELD", help="The field that tells when a message comes.")
@click.option("--replies", type=FILE, help="What the servers of `http` transforms answer.")
@click.option("--allow-http", is_flag=True, help="Let `http` transforms ask their servers.")
@MAX_MOMENTS
def run_as_filter(
    config: Path,
    pipeline: str | None,
    time: str | None,
    replies: Path | None,
    allow_http: bool,
    max_moments: int,
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
        max_moments=max_moments,
    )
    sys.exit(code)


@click.command(cls=ManyObjects)
@click.argument("config", type=FILE)
@click.argument("pipelines", nargs=-1, metavar="[PIPELINE]...")
@click.option("--code", "with_code", is_flag=True, help="Print each generated loop as well.")
@format_option("Text for people, one JSON array, or a graph.", "mermaid", "dot")
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
    with told_of_failing("printed"):
        sys.exit(run(config, pipelines, form, with_code=with_code))


@click.command()
@click.option(
    "--url",
    default=f"http://{ADDRESS}",
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
    with told_of_failing("written"):
        sys.exit(run(wanted, sys.stdout.buffer, sys.stderr))


@click.command(cls=ManyObjects)
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option("--capture", type=FILE, help="Play what `headrace capture` has written with both.")
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="PATH",
    help="A path in messages that makes no difference, such as meta.host.",
)
@format_option("Text for people, or one JSON object.")
@MAX_MOMENTS
def diff(
    old: Path,
    new: Path,
    capture: Path | None,
    ignored: Sequence[str],
    form: str,
    max_moments: int,
) -> None:
    """Compare two configs, offline: what a revert from OLD to NEW keeps, restarts, adds and removes.

    With --capture, both are played on what arrived, in virtual time, and what comes of it is compared. A
    timestamp that is its batch's own moment counts as equal to the other's. Outputs write nothing;
    servers of `http` transforms answer as they did in the capture.

    Exit codes: 0 the same, 1 different or refused, 2 usage, 5 nothing there to compare.
    """
    from headrace.web.commands.diff import diff as run

    if ignored and capture is None:
        raise click.UsageError("--ignore goes with --capture.")
    source = click.get_current_context().get_parameter_source("max_moments")
    if source is not ParameterSource.DEFAULT and capture is None:
        raise click.UsageError("--max-moments goes with --capture.")
    if not all(ignored):
        raise click.UsageError("--ignore takes a path in messages, such as meta.host.")
    with told_of_failing("printed"):
        code = run(old, new, capture, ignored, is_json=form == "json", max_moments=max_moments)
        sys.exit(code)


ALL = (test, run_as_filter, explain, capture, diff)
