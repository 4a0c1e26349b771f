"""`headrace run`: a config as a Unix filter."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from headrace.authoring.configfiles import catalogue
from headrace.authoring.filtering import ConfigFilter, NotAFilter, NotALine, filter_of, run_filter
from headrace.authoring.language.durations import told
from headrace.authoring.language.replies import replies as replies_of
from headrace.authoring.playing.played import SaidAt
from headrace.authoring.playing.playlength import PlayTooLong
from headrace.authoring.playing.scenario import Replies
from headrace.compiler.component.pipelineconfig import LIST_OF
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import Refused
from headrace.compiler.jsontext import encode
from headrace.compiler.text.diagnostics import printable
from headrace.compiler.text.documents import Unreadable, read_file
from headrace.compiler.text.render import render
from headrace.web.commands.configs import load_or_tell, tell_refusal
from headrace.web.commands.exitcodes import FINE, NOTHING, REFUSED

MOST_LINE_BYTES = 64 * 1024 * 1024
"""Of a line that comes in."""


def run(
    config: Path,
    pipeline: str | None,
    lines: BinaryIO,
    out: BinaryIO,
    *,
    time: str | None,
    replies: Path | None,
    asks: bool,
    max_moments: int,
) -> int:
    """Run lines through a config, and return the exit code."""
    loaded = load_or_tell(config, catalogue())
    if loaded is None or loaded.program is None:
        return REFUSED

    def emit(at: float, batch: Batch) -> None:
        try:
            out.writelines(encode(message) + b"\n" for message in batch)
            out.flush()
        except BrokenPipeError:
            os._exit(REFUSED)  # nobody reads any more; from here, or the chain would be blamed
        except OSError as cause:
            print(f"Error: cannot be written: {cause.strerror}", file=sys.stderr, flush=True)
            os._exit(REFUSED)

    try:
        found = filter_of(loaded.program, pipeline)
    except NotAFilter as cause:
        print(printable(str(cause)), file=sys.stderr)
        return NOTHING
    try:
        answers = _answers(found, replies, asks=asks)
        came = run_filter(
            found,
            _bounded(lines),
            emit,
            base=loaded.base,
            time=time,
            replies=answers,
            asks=asks,
            max_moments=max_moments,
        )
    except Refused as cause:
        tell_refusal(cause.diagnostics, loaded.sources)
        return REFUSED
    except (NotALine, NoAnswers, PlayTooLong) as cause:
        print(printable(str(cause)), file=sys.stderr)
        return REFUSED
    _tell("warned", came.warnings)
    _tell("failed", came.failures)
    return REFUSED if came.failures or came.refused else FINE


def _bounded(lines: BinaryIO) -> Iterator[bytes]:
    """Yield lines, none of which fills the memory.

    Raises:
        NotALine: one is larger than a message may be.
    """
    number = 0
    while line := lines.readline(MOST_LINE_BYTES + 1):
        number += 1
        if len(line) > MOST_LINE_BYTES:
            raise NotALine(f"line {number} has more than {MOST_LINE_BYTES >> 20} MiB")
        yield line


class NoAnswers(Exception):
    """An `http` transform would ask a server, and nobody has said whether it may."""


def _answers(
    found: ConfigFilter, file: Path | None, *, asks: bool
) -> Mapping[tuple[str, int], Replies] | None:
    """Return what is answered to the transforms that ask servers.

    Raises:
        NoAnswers: nothing says so, or what says so is wrong.
    """
    names = {
        f"{id}.{LIST_OF['transform']}[{index}]": (id, index) for id, index in found.program.asking()
    }
    if not names or asks:
        return None
    if file is None:
        told_of = ", ".join(names)
        hint = "--allow-http lets it, --replies FILE says what is answered"
        raise NoAnswers(f"{told_of} asks a server: {hint}")
    try:
        written = read_file(file).value
    except Unreadable as cause:
        raise NoAnswers(render(cause.diagnostics, style="plain")) from cause
    answers = {}
    for name, at in names.items():
        if not isinstance(written, dict) or name not in written:
            raise NoAnswers(f"{file}: there is no reply for '{name}'")
        answers[at], faults = replies_of(written[name])
        if faults:
            raise NoAnswers(f"{file}: {name}: {faults[0].message}")
    return answers


def _tell(did: str, said: Iterable[SaidAt]) -> None:
    """Tell each text once, on standard error, with how often it came."""
    counts: dict[tuple[str, str], list[float]] = {}
    for each in said:
        counts.setdefault((each.place, each.text), []).append(each.at)
    for (place, text), moments in counts.items():
        often = "" if len(moments) == 1 else f" ({len(moments):,} times)"
        line = printable(f"{place} at {told(moments[0])}{often}: {text}")
        print(f"{did}  {line}", file=sys.stderr)
