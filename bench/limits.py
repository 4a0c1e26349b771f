"""The limits: what somebody would write by hand for one purpose, with the checks the product makes.

A boolean is no number, a missing field is looked for, arithmetic that leaves the numbers is an error,
and a group is known by the type of its key as well: without that it would not be the same work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import msgspec

Message = dict[str, Any]
Batch = list[Message]

_decode = msgspec.json.Decoder().decode
_encode_lines = msgspec.json.Encoder().encode_lines


class Failed(Exception):
    """A batch that the product would report and drop."""


def filter1(batch: Batch) -> Batch:
    """Keep the warm ones."""
    return [
        m
        for m in batch
        if ((t := m.get("temp")).__class__ is float or t.__class__ is int) and t > 20.5
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
    return _encode_lines(
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


def _failed(message: Message) -> NoReturn:
    raise Failed(f"no number in {message}")
