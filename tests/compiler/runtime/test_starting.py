"""How pipelines start: what is refused, what is waited for, what goes on in the background."""

from __future__ import annotations

import asyncio
import json

import pytest

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.catalogue import scan
from headrace.compiler.config.connectionsfile import load_connections
from headrace.compiler.config.program import Program, load_pipeline
from headrace.compiler.edges import InlineSink
from headrace.compiler.errors import (
    BuildRefused,
    PipelineDeleted,
    PipelineExists,
    Refused,
    UnknownPipeline,
)
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.text.diagnostics import Fault
from headrace.compiler.text.documents import read
from tests.stand_ins import Kept, NeverUp, Told, batches, engine, pipeline, reads, running, takes

CATALOGUE = scan("headrace.operators", "headrace.connectors")


def document_of(value):
    """Return a document as a body of the API is one."""
    return read(json.dumps(value), None, "json")


def test_a_sink_that_refuses_refuses_the_pipeline_and_starts_nothing():
    class Refusing(Kept):
        async def start(self):
            raise BuildRefused(Fault("credential", "wrong password"))

    async def main():
        it = engine()
        source, other = Told(it.clock, [batches([1])]), Kept()

        with pytest.raises(Refused, match=r"pipeline 'p' could not be started: .*wrong password"):
            await it.compile(pipeline("p", [reads(source)], [], [takes(Refusing()), takes(other)]))

        assert [*it.names()] == []
        assert (source.lives, other.finished) == (0, 1)
        assert source.is_closed

    run_virtual(main)


def test_a_sink_that_does_not_answer_leaves_the_pipeline_starting_until_it_does():
    class Late(Kept):
        async def start(self):
            if clock.monotonic() < 20:
                raise OSError("connection refused")

    async def main():
        nonlocal clock
        it = engine()
        clock = it.clock
        source, late = Told(it.clock, [batches([1])]), Late()

        view = await it.compile(pipeline("p", [reads(source)], [], [takes(late)]))
        assert (view.status, source.lives) == ("starting", 0)
        await it.clock.sleep(60)

        assert running(it, "p").status == "running"
        assert late.batches == [[1]]
        [outage] = running(it, "p").failures.table.latest()
        assert (outage.stage, outage.component, outage.message) == (
            "output",
            0,
            "connection refused",
        )
        assert outage.count > 3  # once for each attempt
        await it.close()
        assert late.finished == 1

    clock: Clock
    run_virtual(main)


def test_a_sink_that_hangs_is_answered_as_starting_after_five_seconds():
    async def main():
        it = engine()
        view = await it.compile(pipeline("p", [reads(Told(it.clock, []))], [], [takes(NeverUp())]))

        assert (view.status, it.clock.monotonic()) == ("starting", 5.0)
        await it.close()

    run_virtual(main)


def test_an_id_that_runs_is_refused_and_a_missing_one_generated():
    async def main():
        it = engine()
        await it.compile(pipeline("p", [reads(Told(it.clock, []))]))

        with pytest.raises(PipelineExists, match="a pipeline named 'p' is already running"):
            await it.compile(pipeline("p", [reads(Told(it.clock, []))]))
        generated = await it.compile(pipeline(None, [reads(Told(it.clock, []))]))

        assert len(generated.id.split("-")) == 3
        await it.close()

    run_virtual(main)


def test_deleting_nobody_is_an_error():
    async def main():
        with pytest.raises(UnknownPipeline, match="no pipeline named 'x'"):
            await engine().dispose("x")

    run_virtual(main)


def test_a_file_with_one_refusal_starts_nothing():
    class Refusing(InlineSink):
        def write(self, batch): ...

        async def start(self):
            raise BuildRefused(Fault("credential", "wrong password"))

    async def main():
        it = engine()
        source = Told(it.clock, [batches([1])])
        good = pipeline("good", [reads(source)])
        bad = pipeline("bad", [reads(Told(it.clock, []))], [], [takes(Refusing())])

        with pytest.raises(Refused, match="wrong password"):
            await it.load(Program((good, bad)))

        assert ([*it.names()], source.lives) == ([], 0)

    run_virtual(main)


def test_a_refusal_is_told_although_another_sink_hangs():
    class Refusing(Kept):
        async def start(self):
            raise BuildRefused(Fault("credential", "wrong password"))

    async def main():
        it = engine()
        with pytest.raises(Refused, match="wrong password"):
            await it.compile(
                pipeline(
                    "p", [reads(Told(it.clock, []))], [], [takes(NeverUp()), takes(Refusing())]
                )
            )

    run_virtual(main)


def test_a_sink_that_refuses_late_fails_the_pipeline_and_frees_its_source():
    class Late(Kept):
        async def start(self):
            if clock.monotonic() < 20:
                raise OSError("connection refused")
            raise BuildRefused(Fault("credential", "wrong password"))

    async def main():
        nonlocal clock
        it = engine()
        clock = it.clock
        source = Told(it.clock, [batches([1])])
        await it.compile(pipeline("p", [reads(source)], [], [takes(Late())]))

        await it.clock.sleep(60)

        view = running(it, "p")
        assert (view.status, source.lives, source.is_closed) == ("failed", 0, True)
        assert ("output", 0, "wrong password") in {
            (each.stage, each.component, each.message) for each in view.failures.table.latest()
        }
        await it.dispose("p")

    clock: Clock
    run_virtual(main)


def test_a_pipeline_that_is_deleted_while_it_starts_is_given_up_at_once_and_never_runs():
    class Slowly(Kept):
        async def start(self):
            try:
                await clock.sleep(3)
            except asyncio.CancelledError:
                given_up.append(clock.monotonic() - began)
                raise

    async def main():
        nonlocal began, clock
        it = engine()
        clock = it.clock
        source = Told(it.clock, [batches([1])])
        creating = asyncio.ensure_future(
            it.compile(pipeline("p", [reads(source)], [], [takes(Slowly())]))
        )
        began = clock.monotonic()
        await it.clock.sleep(1)

        await it.dispose("p")
        with pytest.raises(PipelineDeleted, match="'p' was deleted while it was being created"):
            await creating
        await it.clock.sleep(10)

        assert (source.lives, [*it.names()], given_up) == (0, [], [1])

    clock: Clock
    began = 0.0
    given_up: list[float] = []
    run_virtual(main)


def test_every_unresolved_secret_and_unknown_connection_is_refused_with_its_option():
    document = read(
        '{"id": "p", "inputs": [{"type": "http", "auth": {"type": "bearer", "token": "${NOBODY}"}}],'
        ' "outputs": [{"type": "file", "connection": "disk", "path": "a"},'
        ' {"type": "http", "url": "http://h/", "auth": {"type": "header", "name": "x",'
        ' "value": "${NOR_ME}"}}]}',
        None,
        "json",
    )

    async def main():
        config, said = load_pipeline(document, scan("headrace.operators", "headrace.connectors"))
        assert said == []
        with pytest.raises(Refused) as refused:
            await Engine(Clock(asyncio.get_running_loop()), secrets=Secrets({}, {})).compile(config)
        return [(each.path, each.code) for each in refused.value.diagnostics]

    assert run_virtual(main) == [
        ("inputs[0].auth.token", "unresolved-secret"),
        ("outputs[0].connection", "unknown-connection"),
        ("outputs[1].auth.value", "unresolved-secret"),
    ]


def test_a_connection_with_an_unresolved_secret_is_refused_by_name_where_it_is_named():
    bus = {"type": "nats", "urls": "nats://${USER_1}:${PASSWORD_1}@127.0.0.1:1"}
    filed, said = load_connections(document_of({"bus": bus}), CATALOGUE)
    reading = {"type": "nats", "connection": "bus", "subject": "a"}

    async def main():
        config, wrong = load_pipeline(document_of({"id": "p", "inputs": [reading]}), CATALOGUE)
        assert (said, wrong) == ([], [])
        it = Engine(
            Clock(asyncio.get_running_loop()),
            connections=filed,
            secrets=Secrets({"USER_1": "somebody"}, {}),
        )
        with pytest.raises(Refused) as refused:
            await it.compile(config)
        return [(each.path, each.code, each.message) for each in refused.value.diagnostics]

    [(path, code, message)] = run_virtual(main)
    assert (path, code) == ("inputs[0].connection", "unresolved-secret")
    assert message.startswith("'urls' of connection 'bus': nothing resolves '${PASSWORD_1}'")


def test_a_sink_that_comes_up_within_five_seconds_is_answered_as_running():
    class Late(Kept):
        async def start(self):
            if clock.monotonic() < 2:
                raise OSError("connection refused")

    async def main():
        nonlocal clock
        it = engine()
        clock = it.clock
        view = await it.compile(pipeline("p", [reads(Told(it.clock, []))], [], [takes(Late())]))

        assert (view.status, it.clock.monotonic() < 5) == ("running", True)
        await it.close()

    clock: Clock
    run_virtual(main)
