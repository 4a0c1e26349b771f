"""What differs, told to people as lines and to programs as an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.authoring.replaying.configdiff import ConfigDifference, PipelineChange
from headrace.authoring.replaying.replay import ReplayDifference
from headrace.authoring.verdicts.marblediff import drawn
from headrace.compiler.text.diagnostics import printable

_WIDTH = 10
NOTHING = "nothing"
"""What is told in the place of a value that is not there."""


def config_lines(found: ConfigDifference) -> Iterator[str]:
    """Yield what differs in two configs."""
    for id in found.kept:
        yield _line("kept", id)
    for each in found.changed:
        yield _line("changed", f"{each.id}: it is restarted")
        yield from _why(each)
    for id in found.added:
        yield _line("added", id)
    for id in found.removed:
        yield _line("removed", id)
    connections, buckets = found.connections, found.buckets
    for verb in ("changed", "added", "removed"):
        for name in getattr(connections, verb):
            yield _line(verb, f"connection '{name}'")
    for name in buckets.added:
        yield _line("added", f"bucket '{name}'")
    for bucket in buckets.changed:
        yield _line("changed", f"bucket '{bucket.name}': it loses what it holds")
    for bucket in buckets.removed:
        yield _line("removed", f"bucket '{bucket.name}', with what it holds")


def _why(change: PipelineChange) -> Iterator[str]:
    for each in change.settings:
        values = f": {each.before or NOTHING} -> {each.after or NOTHING}"
        yield _line("", f"{each.path}{values} ({each.where})")
    for text in change.built_on:
        yield _line("", f"{text} is another one")


def replay_lines(found: ReplayDifference, where: str) -> Iterator[str]:
    """Yield what differs in two plays; ``where`` is the capture."""
    for timeline in found.timelines:
        yield from drawn(timeline.difference, timeline.name, where)
    for said in found.said:
        yield _line(
            said.kind,
            f"{said.place}: expected {said.before:,} times, came {said.after:,} times: {said.text}",
        )
    for each in found.unanswered:
        yield _line(
            "no reply",
            f"{each.of}: the capture has none to {each.count:,} requests, the first is {each.first}",
        )
    for name, count in found.unplayed:
        yield _line(
            "not played", f"{name}: neither config has it, and {count:,} records are for it"
        )


def _line(word: str, text: str) -> str:
    text = printable(text)
    return f"{word:<{_WIDTH}} {text[:MOST_CHARACTERS]}{'…' if len(text) > MOST_CHARACTERS else ''}"


MOST_CHARACTERS = 300
"""Of one line."""


def is_same(configs: ConfigDifference, replay: ReplayDifference | None) -> bool:
    """Return whether there is no difference; where both were played, none in what came of it."""
    if replay is None:
        return configs.is_empty
    return replay.is_empty and not (configs.added or configs.removed)


def as_json(configs: ConfigDifference, replay: ReplayDifference | None) -> dict[str, Any]:
    """Return what differs as an object."""
    told: dict[str, Any] = {
        "same": is_same(configs, replay),
        "configs": msgspec.to_builtins(configs),
    }
    if replay is not None:
        told["replay"] = {
            "pipelines": [*replay.compared],
            "timelines": [
                {"of": each.name, "differences": each.difference.as_json()}
                for each in replay.timelines
            ],
            "said": msgspec.to_builtins(replay.said),
            "unanswered": msgspec.to_builtins(replay.unanswered),
            "unplayed": [{"input": name, "records": count} for name, count in replay.unplayed],
            "unfound": [*replay.unfound],
        }
    return told
