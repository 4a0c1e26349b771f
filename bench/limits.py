"""The limits: what somebody would write by hand for one purpose, with the checks the product makes.

A boolean is no number, a missing field is looked for, arithmetic that leaves the numbers is an error,
and a group is known by the type of its key as well: without that it would not be the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, NoReturn

import msgspec

Message = dict[str, Any]
Batch = list[Message]

SCRIPT = "msg.rpm += 1; emit(msg)"

_decode = msgspec.json.Decoder().decode
encode_lines = msgspec.json.Encoder().encode_lines
"""Return a batch as lines."""
_held: dict[str | None, Message] = {}


class Failed(Exception):
    """A batch that the product would report and drop."""


def filter1(batch: Batch) -> Batch:
    """Keep the warm ones."""
    return [
        m
        for m in batch
        if ((t := m.get("temp")).__class__ is float or t.__class__ is int) and t > 20.5
    ]


def above(least: float) -> Callable[[Batch], Batch]:
    """Return what keeps the messages with a temperature above a number."""
    return lambda batch: [
        m
        for m in batch
        if ((t := m.get("temp")).__class__ is float or t.__class__ is int) and t > least
    ]


def filter5(batch: Batch) -> Batch:
    """Keep what five conditions hold for."""
    return [
        m
        for m in batch
        if ((t := m.get("temp")).__class__ is float or t.__class__ is int)
        and t > 20.5
        and ((p := m.get("pressure")).__class__ is float or p.__class__ is int)
        and p < 9.5
        and ((h := m.get("humidity")).__class__ is float or h.__class__ is int)
        and h > 10.5
        and ((r := m.get("rpm")).__class__ is float or r.__class__ is int)
        and r > 100
        and t < 97.5
    ]


def map1(batch: Batch) -> Batch:
    """Add one calculated field; the messages are others' too, so they are copied."""
    return [
        {**m, "scaled": s}
        if ((t := m.get("temp")).__class__ is float or t.__class__ is int)
        and (s := t * 1.8) - s == 0.0
        else _failed(m)
        for m in batch
    ]


def explode(batch: Batch) -> Batch:
    """Make a message of each line of an order, with two fields of the order."""
    made = []
    for m in batch:
        lines = m["order"]["lines"]
        if lines.__class__ is not list:
            _failed(m)
        kept = {"order_id": m["order"]["id"], "customer": m["customer"]["id"]}
        for line in lines:
            if line.__class__ is not dict:
                _failed(m)
            made.append({**line, **kept})
    return made


def remember(batch: Batch) -> Batch:
    """Keep two fields of the last message of each machine, and when that was."""
    now = monotonic()
    for m in batch:
        name = m.get("machine")
        key = name if name.__class__ is str else _text(name)
        if key is None:
            continue
        values = _held.get(key)
        if values is None:
            values = _held[key] = {}
        if "temp" in m:
            values["last_temp"] = m["temp"]
        if "rpm" in m:
            values["last_rpm"] = m["rpm"]
        values["at"] = now
    return batch


def recall(batch: Batch) -> Batch:
    """Add what was kept within the last hour, and leave out messages of which nothing was."""
    out, cutoff = [], monotonic() - 3600
    for m in batch:
        name = m.get("machine")
        values = _held.get(name if name.__class__ is str else _text(name))
        if values is None or values["at"] <= cutoff:
            continue
        if "last_temp" in values and "last_rpm" in values:
            kept = {"last_temp": values["last_temp"], "last_rpm": values["last_rpm"]}
            out.append({**m, **kept})
    return out


def chain(messages: Iterable[Message]) -> bytes:
    """Filter, map, reduce and encode in one loop that builds nothing on the way."""
    groups: dict[Any, list[float]] = {}
    for m in messages:
        t = m.get("temp")
        if not ((t.__class__ is float or t.__class__ is int) and t > 20.5):
            continue
        s = t * 1.8
        if s - s != 0.0:
            _failed(m)
        name = m.get("machine")
        key = name if name.__class__ is str else _key(name)
        if key in groups:
            groups[key].append(s)
        else:
            groups[key] = [s]
    return encode_lines(
        [
            {
                "machine": key,
                "mean": sum(found) / len(found),
                "hottest": max(found),
                "n": len(found),
            }
            for key, found in groups.items()
        ]
    )


def chain_of_payloads(payloads: list[bytes]) -> bytes:
    """The chain, from messages that came one by one."""
    return chain(map(_decode, payloads))


def chain_of_body(body: bytes) -> bytes:
    """The chain, from messages that came as one list."""
    return chain(_decode(body))


def script(code: str) -> Callable[[Batch], Batch]:
    """Return what runs a script on every message, as whoever has the engine alone would."""
    import rhai  # some process has another one than is installed

    return rhai.Script(code).run_each


def script_of_body(code: str) -> Callable[[bytes], Batch]:
    """Return the same for messages that came as one list."""
    run_each = script(code)
    return lambda body: run_each(_decode(body))


def script_of_payloads(code: str) -> Callable[[list[bytes]], Batch]:
    """Return the same for messages that came one by one."""
    run_each = script(code)
    return lambda payloads: run_each([*map(_decode, payloads)])


def decode(body: bytes) -> Any:
    """Decode one body."""
    return _decode(body)


def over(batches: list[Any], by: Callable[[Any], object]) -> Callable[[int], Any]:
    """Return the work of calling ``by`` so many times, with one batch after the other."""

    async def work(times: int) -> None:
        rounds, rest = divmod(times, len(batches))
        for _ in range(rounds):
            for batch in batches:
                by(batch)
        for batch in batches[:rest]:
            by(batch)

    return work


def _key(value: Any) -> tuple[type, bytes]:
    if value is None:
        raise Failed("no machine")
    return type(value), msgspec.json.encode(value)


def _text(value: Any) -> str | None:
    is_key = value.__class__ in (bool, int, float)
    return msgspec.json.encode(value).decode() if is_key else None


def _failed(message: Message) -> NoReturn:
    raise Failed(f"no number in {message}")
