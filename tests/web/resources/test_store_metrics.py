"""The figures of what is stored, as Prometheus reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import falcon.testing
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.storedfigures import StoredPart, StoreFigures
from headrace.web.app import Application
from headrace.web.service import Service
from tests.web.conftest import waited_for
from tests.web.jsonengine import JsonEngine
from tests.web.storing import AT, FIGURES, PARTS, Storing

NOW = AT + 61_000
"""When all is asked for. Units: milliseconds since 1970."""
PART = PARTS[0]

Told = dict[tuple[str, ...], float]
"""Figures by the name of the sample, and by pipeline, target and part where it has these labels."""


class Still(Clock):
    """A clock that has stopped."""

    def millis(self) -> int:
        return NOW


async def scraped(components: Any, engine: Engine) -> str:
    """Return the text of all figures."""
    served = JsonEngine(engine, components)
    clock = Still(asyncio.get_running_loop())
    service = Service(served, components, clock, is_ready=True)
    async with falcon.testing.ASGIConductor(waited_for(Application(service))) as client:
        answer = await client.simulate_get("/metrics")
    assert answer.status_code == 200
    return str(answer.text)


async def told_of(components: Any, store: StoreFigures) -> Told:
    """Return what is told of a store."""
    text = await scraped(components, Storing(Clock(asyncio.get_running_loop()), store))
    told = [
        ((sample.name, *in_order(sample.labels)), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.name.startswith(("headrace_stored_", "headrace_store_"))
    ]
    assert len(dict(told)) == len(told)
    return dict(told)


def in_order(labels: Mapping[str, str]) -> list[str]:
    """Return the values of labels: of none, or of those that parts have."""
    assert {*labels} in (set(), {"pipeline", "target", "part"})
    return [labels[name] for name in ("pipeline", "target", "part") if labels]


async def parts_of(components: Any, *parts: StoredPart) -> Told:
    """Return what is told of parts."""
    told = await told_of(components, replace(FIGURES, parts=parts))
    return {name: value for name, value in told.items() if name[0].startswith("headrace_stored_")}


async def test_a_store_is_told_of_with_all_its_figures(components) -> None:
    other = replace(PART, id=2, pipeline="alarms", entries=1, bytes=7, oldest=NOW - 250)

    assert await told_of(components, replace(FIGURES, parts=[PART, other])) == {
        ("headrace_stored_bytes", "press-line", "http", "journal"): 120,
        ("headrace_stored_bytes", "alarms", "http", "journal"): 7,
        ("headrace_stored_entries", "press-line", "http", "journal"): 3,
        ("headrace_stored_entries", "alarms", "http", "journal"): 1,
        ("headrace_stored_oldest_seconds", "press-line", "http", "journal"): 61,
        ("headrace_stored_oldest_seconds", "alarms", "http", "journal"): 0.25,
        ("headrace_store_free_bytes",): 10_000,
        ("headrace_store_failures_total",): 4,
        ("headrace_store_damaged_total",): 5,
        ("headrace_store_commit_seconds_sum",): 1.5,
        ("headrace_store_commit_seconds_count",): 6,
    }


async def test_where_no_store_is_open_nothing_is_told_of_it(components) -> None:
    text = await scraped(components, Engine(Clock(asyncio.get_running_loop())))

    assert "headrace_messages_total" in text
    assert "headrace_store" not in text


async def test_a_store_in_memory_has_no_disk(components) -> None:
    told = await told_of(components, replace(FIGURES, free_bytes=None))

    assert ("headrace_store_free_bytes",) not in told
    assert told["headrace_store_commit_seconds_count",] == 6


async def test_figures_have_their_types(components) -> None:
    text = await scraped(components, Storing(Clock(asyncio.get_running_loop())))

    kinds = {
        name: kind
        for _, _, name, kind in (
            line.split() for line in text.splitlines() if line.startswith("# TYPE headrace_store")
        )
    }
    assert kinds == {
        "headrace_stored_bytes": "gauge",
        "headrace_stored_entries": "gauge",
        "headrace_stored_oldest_seconds": "gauge",
        "headrace_store_free_bytes": "gauge",
        "headrace_store_failures_total": "counter",
        "headrace_store_damaged_total": "counter",
        "headrace_store_commit_seconds": "summary",
    }


@pytest.mark.parametrize(
    ("oldest", "seconds"),
    [(None, 0), (NOW, 0), (NOW - 1, 0.001), (NOW + 3_600_000, 0), (0, NOW / 1000)],
)
async def test_the_age_is_that_of_the_oldest_and_never_negative(
    components, oldest: int | None, seconds: float
) -> None:
    told = await parts_of(components, replace(PART, oldest=oldest))

    assert told["headrace_stored_oldest_seconds", "press-line", "http", "journal"] == seconds


async def test_what_a_namesake_has_left_is_added_up(components) -> None:
    apart = replace(PART, id=4, target="http 2")
    left = replace(PART, id=5, entries=10, bytes=1000, oldest=AT - 1000, left_over=True)
    empty = replace(PART, id=6, entries=0, bytes=0, oldest=None, left_over=True)

    assert await parts_of(components, PART, apart, left, empty) == {
        ("headrace_stored_bytes", "press-line", "http", "journal"): 1120,
        ("headrace_stored_entries", "press-line", "http", "journal"): 13,
        ("headrace_stored_oldest_seconds", "press-line", "http", "journal"): 62,
        ("headrace_stored_bytes", "press-line", "http 2", "journal"): 120,
        ("headrace_stored_entries", "press-line", "http 2", "journal"): 3,
        ("headrace_stored_oldest_seconds", "press-line", "http 2", "journal"): 61,
    }


async def test_any_name_can_be_a_label(components) -> None:
    told = await parts_of(components, replace(PART, pipeline='p "1"\\', target="a\nü,}"))

    assert told["headrace_stored_entries", 'p "1"\\', "a\nü,}", "journal"] == 3
