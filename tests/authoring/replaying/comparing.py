"""Two configs that are written in a test, and a capture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.authoring.configfiles import ConfigFiles, LoadedConfig, load_config
from headrace.authoring.language.capturefile import CaptureFile, capture_of
from headrace.authoring.replaying.configdiff import ConfigDifference, config_difference
from headrace.authoring.replaying.replay import ReplayDifference, replay_difference
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.jsontext import encode
from headrace.compiler.text.diagnostics import Severity
from headrace.compiler.text.render import render
from tests.authoring.playing.playing import known

HEADER = {
    "headrace": "capture",
    "version": 1,
    "started_at": "2026-03-02T06:00:00+00:00",
}


CONNECTIONS = "plant: {type: mqtt, host: '${NOBODY_HAS_IT}'}\n"


def config(folder: Path, name: str, text: str, connections: str | None = None) -> Any:
    """Return a config that stands in a folder, with nothing wrong with it."""
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "config.yaml").write_text(text)
    (place / "config.connections.yaml").write_text(connections or CONNECTIONS)
    loaded: LoadedConfig[ConfigFiles] = load_config(ConfigFiles(place / "config.yaml"), known())
    wrong = [one for one in loaded.diagnostics if one.severity is Severity.ERROR]
    assert not wrong, render(wrong, style="plain")
    return loaded


def configs_differ(folder: Path, old: str, new: str, *connections: str) -> ConfigDifference:
    """Return what differs in two configs."""
    beside = connections or (None, None)
    return config_difference(
        config(folder, "old", old, beside[0]), config(folder, "new", new, beside[1])
    )


def capture(*lines: dict[str, Any], ends: float | None = None) -> CaptureFile:
    """Return a capture with these lines."""
    end = [] if ends is None else [{"at": ends, "end": "seconds", "records": 0, "dropped": 0}]
    return capture_of((encode(each) + b"\n" for each in (HEADER, *lines, *end)), "c.ndjson")


def at(moment: float, to: str, *batch: Any, **meta: Any) -> dict[str, Any]:
    """Return that messages arrive as one batch at the first input of a pipeline."""
    return {"at": moment, "to": f"{to}.inputs[0]", "batch": [*batch], "meta": meta}


def replays_differ(
    folder: Path,
    old: str,
    new: str,
    captured: CaptureFile,
    ignored: Sequence[str] = (),
    **options: Any,
) -> ReplayDifference:
    """Return what differs in what comes of a capture."""
    paths = [*map(DottedPath, ignored)]
    return replay_difference(
        config(folder, "old", old), config(folder, "new", new), captured, paths, **options
    )
