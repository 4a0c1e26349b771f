"""`headrace diff`: what differs in two configs, and in what comes of the same capture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from headrace.authoring.configfiles import catalogue
from headrace.authoring.language.capturefile import CaptureFile, NotACapture, read_capture
from headrace.authoring.playing.playlength import DEFAULT_MAX_MOMENTS
from headrace.authoring.replaying.configdiff import config_difference
from headrace.authoring.replaying.replay import (
    ReplayDifference,
    ReplayTooLong,
    replay_difference,
)
from headrace.authoring.replaying.report import as_json, config_lines, is_same, replay_lines
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.errors import Refused
from headrace.compiler.text.counting import counted
from headrace.compiler.text.diagnostics import printable
from headrace.web.commands.configs import load_or_tell, tell_refusal
from headrace.web.commands.exitcodes import FINE, NOTHING, REFUSED
from headrace.web.commands.printing import print_json, print_text


def diff(
    old: Path,
    new: Path,
    capture: Path | None,
    ignored: Sequence[str],
    *,
    is_json: bool,
    max_moments: int = DEFAULT_MAX_MOMENTS,
) -> int:
    """Print what differs, and return the exit code.

    With a capture, configs that differ are the same if they have the same pipelines and the same comes of
    it.
    """
    known = catalogue()
    # What is wrong with either is told at once.
    before, after = (load_or_tell(each, known) for each in (old, new))
    if before is None or after is None:
        return REFUSED
    try:
        captured = None if capture is None else _read(capture)
        replay: ReplayDifference | None = None
        configs = config_difference(before, after)
        if captured is not None:
            paths = [*map(DottedPath, ignored)]
            replay = replay_difference(before, after, captured, paths, max_moments)
    except (_Unreadable, ReplayTooLong) as cause:
        print(printable(str(cause)), file=sys.stderr)
        return REFUSED
    except Refused as cause:
        tell_refusal(cause.diagnostics, {**before.sources, **after.sources})
        return REFUSED
    if captured is not None and replay is not None:
        if why := _nothing(captured, replay):
            print(printable(why), file=sys.stderr)
            return NOTHING
        _tell_gaps(captured, replay)
    if is_json:
        print_json(as_json(configs, replay))
    else:
        print_text(*config_lines(configs))
        if replay is not None and captured is not None:
            said = f"{captured.name} is played with both: {old} is expected, {new} came"
            lines = [*replay_lines(replay, captured.name)]
            same = f"the same came of {_records(captured)}"
            print_text("", printable(said), *(lines or [same]))
    return FINE if is_same(configs, replay) else REFUSED


class _Unreadable(Exception):
    """A capture cannot be read; the text says why."""


def _read(file: Path) -> CaptureFile:
    try:
        return read_capture(file)
    except NotACapture as cause:
        raise _Unreadable(cause) from cause
    except OSError as cause:
        raise _Unreadable(f"{file} cannot be read: {cause.strerror}") from cause


def _nothing(captured: CaptureFile, replay: ReplayDifference) -> str | None:
    """Return why there is nothing to compare, None where there is something."""
    if not replay.compared:
        return "the configs have no pipeline of the same id: nothing can be compared"
    counts = captured.inputs()
    if counts.keys() <= {name for name, _ in replay.unplayed}:
        found = ", ".join(counts) or "nothing"
        return f"{captured.name} has nothing for an input of either config: it has {found}"
    return None


def _tell_gaps(captured: CaptureFile, replay: ReplayDifference) -> None:
    """Tell on standard error what is missing: in the capture, and of what was to be ignored."""
    for path in replay.unfound:
        said = printable(f"--ignore {path}: no message that was compared has it")
        print(said, file=sys.stderr)
    if captured.dropped:
        said = "were dropped as it was taken, and are missing"
        print(f"{captured.name}: {captured.dropped:,} records {said}", file=sys.stderr)
    if not captured.is_whole:
        print(f"{captured.name} has no last line: it may have been cut off", file=sys.stderr)
    if captured.is_redacted and replay.unanswered:
        print(f"{captured.name} is redacted, and so has no replies of servers", file=sys.stderr)


def _records(captured: CaptureFile) -> str:
    return counted(len(captured.arrivals), "record")
