"""Amounts that a test expects: posts that are refused or not answered, messages that are lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import get_args

from headrace.authoring.language.testtargets import Targets, UnknownTarget
from headrace.authoring.language.timelines import type_fault
from headrace.compiler.delivery import JsonValue
from headrace.compiler.runtime.monitoring.losses import LossReason
from headrace.compiler.schema.records import unknown_key
from headrace.compiler.text.diagnostics import Fault, Path

REASONS: tuple[LossReason, ...] = get_args(LossReason)

ExpectedLosses = Mapping[str, int | Mapping[str, int]]
"""By component, how many messages are lost: for whatever reason, or by reason."""


def wrong_posts(value: JsonValue, path: Path, targets: Targets, what: str) -> Iterator[Fault]:
    """Yield what is wrong with counts of posts, by pipeline; ``what`` is what becomes of them."""
    if not isinstance(value, dict):
        yield type_fault(value, "an object of counts by pipeline", path)
        return
    for id, count in value.items():
        try:
            targets.posted(id)
        except UnknownTarget as cause:
            yield replace(cause.fault, on_key=True, path=(*path, id))
        if not _is_amount(count):
            yield type_fault(count, f"how many posts are {what}", (*path, id))


def wrong_losses(value: JsonValue, path: Path, targets: Targets) -> Iterator[Fault]:
    """Yield what is wrong with losses, by component."""
    if not isinstance(value, dict):
        yield type_fault(value, "an object of amounts by component, or {} for none", path)
        return
    for at, amount in value.items():
        try:
            targets.failing(at)
        except UnknownTarget as cause:
            yield replace(cause.fault, on_key=True, path=(*path, at))
        yield from _wrong_amount(amount, (*path, at))


def _wrong_amount(amount: JsonValue, path: Path) -> Iterator[Fault]:
    if not isinstance(amount, dict):
        if not _is_amount(amount):
            expected = "how many messages are lost, or an object of that by reason"
            yield type_fault(amount, expected, path)
        return
    for reason, count in amount.items():
        if reason not in REASONS:
            yield replace(unknown_key(reason, REASONS, amount), path=(*path, reason))
        elif not _is_amount(count):
            yield type_fault(count, "how many messages are lost", (*path, reason))


def _is_amount(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
