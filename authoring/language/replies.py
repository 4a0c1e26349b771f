"""What the servers answer that `http` transforms ask, as a test writes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headrace.authoring.language.durations import NotADuration, not_a_time, seconds
from headrace.authoring.language.givens import plain
from headrace.authoring.language.timelines import type_fault
from headrace.authoring.playing.scenario import Replies, ScriptedReply
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.schema.records import unknown_key
from headrace.compiler.text.diagnostics import Fault, shown

DOWN = "down"
WORDS = ("$body", "$echo", "$status", "$after")
A_REPLY = "a status, 'down', or an object with $body or $echo, $status, $after"


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """One reply. ``echo`` are fields that are added to each message that was asked with."""

    reply: ScriptedReply
    echo: dict[str, JsonValue] | None = None

    def to(self, batch: Batch) -> ScriptedReply:
        """Return what is answered to a batch."""
        if self.echo is None:
            return self.reply
        body = [{**each, **self.echo} if isinstance(each, dict) else each for each in batch]
        return replace(self.reply, body=body)


def replies(value: JsonValue) -> tuple[Replies, list[Fault]]:
    """Return what answers each request, and what is wrong with how it is written.

    A list is used up in turn; anything else answers every time.
    """
    faults = list[Fault]()
    if not isinstance(value, list):
        only = _reply(value, faults)
        return only.to, faults
    listed = []
    for index, each in enumerate(value):
        wrong = list[Fault]()
        listed.append(_reply(each, wrong))
        faults += [replace(fault, path=(index, *fault.path)) for fault in wrong]
    turns = iter(listed)

    def in_turn(batch: Batch) -> ScriptedReply | str:
        found = next(turns, None)
        count = f"{len(listed)} repl{'y' if len(listed) == 1 else 'ies'}"
        return (
            f"the test has {count} for it, and this is one request more"
            if found is None
            else found.to(batch)
        )

    return in_turn, faults


def _reply(value: JsonValue, faults: list[Fault]) -> WrittenReply:
    faults += _wrong(value)
    if faults:
        return WrittenReply(ScriptedReply())
    if value == DOWN:
        return WrittenReply(ScriptedReply(is_down=True))
    if isinstance(value, int):
        return WrittenReply(ScriptedReply(value))
    after = seconds(value["$after"]) if "$after" in value else 0.0
    reply = ScriptedReply(value.get("$status", 200), plain(value.get("$body")), after=after)
    return WrittenReply(reply, plain(value["$echo"]) if "$echo" in value else None)


def _wrong(value: JsonValue) -> Iterator[Fault]:
    if isinstance(value, int) and not isinstance(value, bool):
        yield from _wrong_status(value, ())
    elif isinstance(value, dict):
        yield from _wrong_words(value)
    elif value != DOWN:
        yield type_fault(value, A_REPLY, ())


def _wrong_words(value: dict[str, JsonValue]) -> Iterator[Fault]:
    for key in value:
        if key not in WORDS:
            yield replace(unknown_key(key, WORDS, value), path=(key,))
    if "$body" in value and "$echo" in value:
        expected = "$body or $echo"
        yield Fault("conflict", "a reply has $body or $echo, not both", "both", expected)
    if "$echo" in value and not isinstance(value["$echo"], dict):
        yield type_fault(value["$echo"], "fields that each message gets", ("$echo",))
    if "$status" in value:
        yield from _wrong_status(value["$status"], ("$status",))
    if "$after" in value:
        try:
            seconds(value["$after"])
        except (NotADuration, TypeError):
            yield replace(not_a_time(value["$after"]), path=("$after",))


def _wrong_status(value: JsonValue, path: tuple[str, ...]) -> Iterator[Fault]:
    if not isinstance(value, int) or isinstance(value, bool) or not 100 <= value <= 599:
        expected = "a status from 100 to 599"
        yield Fault(
            "out-of-range",
            f"expected {expected}, found {shown(value)}",
            shown(value),
            expected,
            path=path,
        )
