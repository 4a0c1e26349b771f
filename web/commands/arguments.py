"""What command lines are made of: arguments, options, and what is said when nothing can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

ADDRESS = "127.0.0.1:6767"
"""Where a server listens, and is looked for, unless something else is said."""
FILE = click.Path(path_type=Path)

_Command = TypeVar("_Command", bound=Callable[..., Any])


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


def format_option(help: str, *graphs: str) -> Callable[[_Command], _Command]:
    """Return the option `--format`: the ``form`` that a command prints, of text, JSON, and ``graphs``."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", *graphs]),
        default="text",
        show_default=True,
        help=help,
    )


@contextmanager
def told_of_failing(how: str) -> Iterator[None]:
    """Have it told in a line that something cannot be ``how``: printed, written.

    Of a pipe that nobody reads any more nothing is told: click ends without a word.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as cause:
        raise click.ClickException(f"cannot be {how}: {cause.strerror}") from cause
