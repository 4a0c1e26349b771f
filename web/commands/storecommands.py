"""`headrace store`: look at, check, export and give up what a stopped server has kept.

As in `cli`, only click is imported here; each command imports what it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from headrace.web.commands.arguments import FILE, format_option, told_of_failing
from headrace.web.commands.exitcodes import REFUSED

_FOLDER = click.argument("directory", metavar="DIR", type=FILE)
_ID = click.IntRange(-(2**63), 2**63 - 1)


@click.group("store")
def store() -> None:
    """Look at what a stopped server has kept in the DIR of its --data-dir: show, check, export, discard.

    A server that runs has its store to itself: it is asked over the API, or stopped.

    Exit codes: 0 fine, 1 something is damaged, the store is in use, or of a newer version, 2 usage,
    5 no store there, or nothing in it that is meant.
    """


@store.command()
@_FOLDER
@format_option("Tables for people, or one JSON object.")
def show(directory: Path, form: str) -> None:
    """Tell how much is kept, and of what; nothing of what is in it."""
    from headrace.web.commands.stoppedstore import show as run

    with _told("printed"):
        sys.exit(run(directory, is_json=form == "json"))


@store.command()
@_FOLDER
@format_option("A line for each damage, or one JSON array.")
def check(directory: Path, form: str) -> None:
    """Look whether all that is kept is what was written, and tell what is not. Nothing is changed.

    What is damaged a server tells and leaves out when it comes upon it; nothing has to be done by hand.
    """
    from headrace.web.commands.stoppedstore import check as run

    with _told("printed"):
        sys.exit(run(directory, is_json=form == "json"))


@store.command()
@_FOLDER
@click.argument("part", type=_ID, required=False)
@click.option("--dead-letters", "is_letters", is_flag=True, help="Dead letters in place of a PART.")
@click.option("--pipeline", metavar="ID", help="Only the dead letters of this one.")
@click.option("-o", "--output", "file", type=FILE, help="A file to write; else standard output.")
def export(
    directory: Path,
    part: int | None,
    is_letters: bool,
    pipeline: str | None,
    file: Path | None,
) -> None:
    """Write what is in a PART, by its id, or in dead letters, the oldest first, one JSON object a line.

    This alone prints contents, which may be secret. A file is made for its owner alone, and one that is
    there stays as it is until all is written.
    """
    from headrace.web.commands.stoppedstore import export as run

    if (part is None) != is_letters or (pipeline is not None and not is_letters):
        raise click.UsageError("Say which: a PART, or --dead-letters, which --pipeline goes with.")
    with _told("written"):
        sys.exit(run(directory, part, pipeline, file))


@store.command()
@_FOLDER
@click.argument("part", type=_ID)
def discard(directory: Path, part: int) -> None:
    """Give up a PART with all that is in it, by the id that `show` tells.

    It asks nothing, and it cannot be had back. A pipeline that has such a part begins with an empty one.
    """
    from headrace.web.commands.stoppedstore import discard as run

    with _told("printed"):
        sys.exit(run(directory, part))


@contextmanager
def _told(how: str) -> Iterator[None]:
    """Have it told in a line why a store cannot be looked at."""
    from headrace.compiler.text.diagnostics import printable
    from headrace.web.commands.stoppedstore import StoreCommandFails

    try:
        with told_of_failing(how):
            yield
    except StoreCommandFails as cause:
        print(printable(str(cause)), file=sys.stderr)
        sys.exit(cause.exit_code if cause.exit_code else REFUSED)
