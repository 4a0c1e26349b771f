"""The figures that Prometheus reads."""

from __future__ import annotations

import builtins
import sys
import threading
import time
from typing import Any

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from headrace.compiler.buckets import Bounds
from headrace.web.app import Application
from tests.web.declaring import declare
from tests.web.exchange import Exchange

CONFIG = {
    "id": 'p "1"',
    "inputs": [{"type": "http"}],
    "transforms": [
        {"type": "filter", "Numeric": {"field": "n", "operator": "greater_than", "value": 0}},
        {
            "type": "map",
            "mappings": [{"type": "copy", "from": "n", "as": "m"}],
            "on_error": "skip",
        },
        {"type": "buffer", "size": 2},
    ],
}


def figures(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Return what a scrape reads, by name and labels."""
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


def own(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Return those figures that no other server has."""
    return {name: each for name, each in figures(text).items() if name.startswith("headrace_")}


async def test_every_figure_is_there_for_every_pipeline_and_every_bucket(client, service) -> None:
    await client.simulate_post("/api/pipelines", json=CONFIG)
    buckets = declare(service.engine, {"machines": Bounds(), 'b "1"': Bounds()})
    buckets.get("machines").merge({"m1": {"n": 1}, "m2": {"n": 2}})
    listener = service.engine.observe()
    exchange = Exchange(
        Application(service),
        "POST",
        "/api/pipelines/p%20%221%22/messages",
        body=[b'[{"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}]'],
    )
    await exchange.run()
    run = await anext(aiter(listener))
    assert len(run.events) == len(("input", "output"))
    listener.close()

    scraped = await client.simulate_get("/metrics")

    assert scraped.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    id = 'p "1"'
    assert own(scraped.text) == {
        "headrace_messages": {(id, "input"): 4, (id, "output"): 2},
        "headrace_messages_skipped": {(id,): 0},
        "headrace_failures": {(id, "input"): 0, (id, "transform"): 0, (id, "output"): 0},
        "headrace_messages_lost": {
            **{(index, id, "batch", "transform"): 0 for index in "012"},
            ("1", id, "error", "transform"): 0,
        },
        "headrace_output_waiting": {},
        "headrace_retries": {},
        "headrace_dead_letters": {},
        "headrace_messages_held": {(id,): 1},
        "headrace_batches_in_flight": {(id,): 0},
        "headrace_pipeline_status": {(id, "running"): 1},
        "headrace_bucket_keys": {("machines",): 2, ('b "1"',): 0},
        "headrace_bucket_evictions": {("machines",): 0, ('b "1"',): 0},
    }


async def test_keys_that_had_to_go_are_counted(client, service) -> None:
    buckets = declare(service.engine, {"small": Bounds(max_keys=2)})
    buckets.get("small").merge({key: {"n": 1} for key in "abcde"})

    scraped = await client.simulate_get("/metrics")

    assert 'headrace_bucket_evictions_total{bucket="small"} 3.0' in scraped.text.splitlines()


async def test_nothing_is_left_in_the_registry_of_the_process(client) -> None:
    before = list(REGISTRY.collect())

    await client.simulate_get("/metrics")

    assert [family.name for family in REGISTRY.collect()] == [family.name for family in before]


async def test_a_server_without_pipelines_has_figures_as_well(client) -> None:
    scraped = await client.simulate_get("/metrics")

    assert scraped.status_code == 200
    assert own(scraped.text)
    assert all(not samples for samples in own(scraped.text).values())


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has /proc")
async def test_what_the_process_uses_is_told(client) -> None:
    before = time.process_time()

    scraped = figures((await client.simulate_get("/metrics")).text)

    assert {name for name in scraped if not name.startswith("headrace_")} == {
        "process_cpu_seconds",
        "process_max_fds",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_virtual_memory_bytes",
    }
    # The system counts in hundredths of a second.
    assert before - 0.02 <= scraped["process_cpu_seconds"][()] <= time.process_time() + 0.02
    assert scraped["process_resident_memory_bytes"][()] > 1_000_000


LOSING = {
    "id": "losing",
    "inputs": [{"type": "http"}],
    "transforms": [
        {
            "type": "map",
            "mappings": [{"type": "cast", "from": "n", "to": "integer"}],
            "on_error": "skip",
        },
        {"type": "map", "mappings": [{"type": "copy", "from": "m", "as": "c"}]},
    ],
}


async def test_lost_messages_are_counted_by_component_and_reason(client, service) -> None:
    await client.simulate_post("/api/pipelines", json=LOSING)
    listener = service.engine.observe()
    for body in (
        b'[{"n": "x"}, {"n": "y"}, {}, {"n": 1, "m": 1}]',
        b'[{"n": "z"}, {"n": 1}, {"n": 2}]',
    ):
        await Exchange(
            Application(service), "POST", "/api/pipelines/losing/messages", body=[body]
        ).run()
        await anext(aiter(listener))
    listener.close()

    scraped = own((await client.simulate_get("/metrics")).text)

    assert scraped["headrace_messages_lost"] == {
        ("0", "losing", "error", "transform"): 4,
        ("0", "losing", "batch", "transform"): 0,
        ("1", "losing", "batch", "transform"): 2,
    }
    # A failure for each text and batch, whatever the number of messages.
    assert scraped["headrace_failures"]["losing", "transform"] == 4


async def test_what_a_scrape_loads_nobody_waits_for(
    client, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, loading = builtins.__import__, list[threading.Thread]()

    def loaded(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("prometheus_client"):
            loading.append(threading.current_thread())
        return load(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", loaded)
    await client.simulate_get("/metrics")

    assert loading
    assert threading.main_thread() not in loading
