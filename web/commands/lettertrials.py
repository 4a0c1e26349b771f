"""What `headrace dead-letters replay --dry-run` prints: what would become of one dead letter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.compiler.text.diagnostics import printable
from headrace.web.commands.exitcodes import FINE, REFUSED
from headrace.web.commands.letterrequests import Chosen, LetterServer, tell_changed, telling_missing
from headrace.web.commands.printing import print_json, print_text


def dry_run(
    server: LetterServer, chosen: Chosen, options: Mapping[str, Any], *, is_json: bool
) -> int:
    """Print what would become of one letter; ``options`` as in the body of a replay."""
    body = {"ids": [*chosen.ids], "dry_run": True, **options}
    with telling_missing(server, options.get("from", chosen.pipeline), *chosen.ids):
        told = server.value("POST", f"{chosen.path}/replay", body=body)
    if is_json:
        print_json(told)
    else:
        tell_changed(told)
        print_text(*map(printable, _lines(told)))
    return REFUSED if told["fails"] else FINE


def _lines(told: Any) -> Iterator[str]:
    where = f"{told['stage']} {told['component']} ({told['kind']})"
    if told["failure"] is not None:
        yield f"{where} can make nothing of it: {told['failure']}"
        return
    yield f"{where} would get {_some(told['messages'])}"
    if (ran := told["transformed"]) is None:
        yield from map(_shown, told["messages"])
    else:
        yield from _transformed(ran)
    yield from (f"note: {each}" for each in told["notes"])


def _transformed(ran: Any) -> Iterator[str]:
    for stage in ran["stages"]:
        handed_on = [message for batch in stage["batches"] for message in batch]
        yield f"transform {stage['index']} ({stage['kind']}) would hand on {_some(handed_on)}"
        yield from map(_shown, handed_on)
    for each in ran.get("left", ()):
        place = f"transform {each['at']} ({each['kind']})"
        yield f"message {each['message']} would go no further than {place}: {each['why']}"
    if ran["outcome"] == "failed":
        yield f"transform {ran['at']} ({ran['kind']}) would fail: {ran['message']}"
    yield from (f"warning: {each}" for each in ran["warnings"])
    yield from (f"note: {each}" for each in ran["notes"])


def _some(messages: Any) -> str:
    return f"{len(messages):,} message{'' if len(messages) == 1 else 's'}"


def _shown(message: Any) -> str:
    return f"  {json.dumps(message, ensure_ascii=False)}"
