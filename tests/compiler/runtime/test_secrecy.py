"""What a component says of what it resolved: whoever hears it reads the template."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Input, Output
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.edges import Sink, Source
from headrace.compiler.errors import BatchFailed, BuildRefused, Refused, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.failures import MOST_BYTES
from headrace.compiler.runtime.sampling import Sample
from headrace.compiler.schema.fields import SecretText
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret, Secrets
from headrace.compiler.text.diagnostics import Fault
from tests.stand_ins import Slow, Told, batches, pipeline, run, running, with_attribute
from tests.virtual import virtual

PASSWORD = "tr0ub4dor&3/x"
SPELLINGS = (PASSWORD, quote(PASSWORD), quote(PASSWORD, safe=""))
URL = Secret("nats://app:${BUS_PASS}@bus:4222")


class Telling(Input, kind="telling"):
    """An input that does with what it resolves whatever it is told to."""

    url: Secret = option(SecretText(), "Where it would read.")

    def source(self, ctx: Context) -> Source:
        made: Source = self.does(ctx, ctx.resolve(self.url))  # type: ignore[attr-defined]
        return made


class Writing(Output, kind="writing"):
    """An output that does with what it resolves whatever it is told to."""

    url: Secret = option(SecretText(), "Where it would write.")

    def open(self, ctx: Context) -> Sink:
        made: Sink = self.does(ctx, ctx.resolve(self.url))  # type: ignore[attr-defined]
        return made


def tells(does: Callable[[Context, str], Source]) -> Input:
    return with_attribute(Telling(url=URL), "does", does)


def writes(does: Callable[[Context, str], Sink]) -> Output:
    return with_attribute(Writing(url=URL), "does", does)


def engine() -> Engine:
    secrets = Secrets({"BUS_PASS": PASSWORD}, {})
    return Engine(Clock(asyncio.get_running_loop()), secrets=secrets)


def is_shown(text: str) -> bool:
    """Return whether a text has the password, however it is written."""
    return any(spelling in text for spelling in SPELLINGS)


def idle(ctx: Context) -> Source:
    return Told(ctx.clock, [])


def test_a_refusal_of_the_build_shows_no_value():
    def refuses(ctx: Context, url: str) -> Source:
        raise BuildRefused(Fault("conflict", f"{url} said no", found=quote(url)))

    async def main():
        with pytest.raises(Refused) as refused:
            await engine().compile(pipeline("p", [tells(refuses)]))

        [diagnostic] = refused.value.diagnostics
        assert diagnostic.message == "nats://app:${BUS_PASS}@bus:4222 said no"
        assert not is_shown(f"{refused.value} {diagnostic}")

    run_virtual(main)


class Shut(Slow):
    """A sink that cannot start."""

    def __init__(self, ctx: Context, cause: Exception) -> None:
        super().__init__(ctx.clock, 0)
        self._cause = cause

    async def start(self) -> None:
        raise self._cause


def test_a_refusal_of_a_start_shows_no_value():
    async def main():
        said = f"wrong password '{PASSWORD}'"
        output = writes(lambda ctx, url: Shut(ctx, BuildRefused(Fault("conflict", said))))
        with pytest.raises(Refused) as refused:
            await engine().compile(pipeline("p", [tells(lambda ctx, url: idle(ctx))], [], [output]))

        assert "wrong password '${BUS_PASS}'" in str(refused.value)

    run_virtual(main)


FAULTS: list[Callable[[str], Exception]] = [
    BatchFailed,
    Unreachable,
    OSError,
    RuntimeError,
    lambda said: UnicodeError(said, {"password": PASSWORD}),
    lambda said: KeyError(said),
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_failure_shows_no_value(caplog, fault, spelling):
    caplog.set_level(logging.INFO)

    async def main():
        it = engine()
        listener = it.observe()
        heard: list[Any] = []
        hearing = asyncio.ensure_future(_heard(listener, heard))
        await run(
            it,
            pipeline(
                "p",
                [tells(lambda ctx, url: Told(ctx.clock, [batches([1])]))],
                [],
                [writes(lambda ctx, url: Slow(ctx.clock, 0, [fault(f"AUTH {spelling} failed")]))],
            ),
        )
        await it.clock.sleep(1)

        [signature] = running(it, "p").failures.table.latest()
        assert "AUTH ${BUS_PASS} failed" in signature.message
        await it.close()
        await hearing
        assert any("${BUS_PASS}" in str(event) for event in heard)
        assert not is_shown(f"{signature} {heard}")

    run_virtual(main)
    assert "${BUS_PASS}" in caplog.text
    assert not is_shown(caplog.text)


async def _heard(listener: Any, heard: list[Any]) -> None:
    async for event in listener:
        heard.append(event)


def test_a_warning_and_a_note_show_no_value(caplog):
    caplog.set_level(logging.INFO)

    def says(ctx: Context, url: str) -> Source:
        ctx.warn(f"warned of {url}")
        ctx.warn_once(f"warned once of {quote(url)}")
        ctx.note(f"noted {PASSWORD}")
        ctx.fail(f"failed with {PASSWORD}")
        return idle(ctx)

    async def main():
        it = engine()
        await run(it, pipeline("p", [tells(says)]))
        await it.close()

    run_virtual(main)
    assert caplog.text.count("${BUS_PASS}") == 4
    assert not is_shown(caplog.text)


def test_a_long_warning_is_cut_and_shows_no_part_of_a_value(caplog):
    caplog.set_level(logging.INFO)

    def says(ctx: Context, url: str) -> Source:
        for say in (ctx.warn, ctx.note):
            say("x" * (MOST_BYTES - 5) + PASSWORD + "y" * 100_000)
        return idle(ctx)

    async def main():
        it = engine()
        await run(it, pipeline("p", [tells(says)]))
        await it.close()

    run_virtual(main)
    assert len(caplog.messages) == 2
    for said in caplog.messages:
        assert len(said) < MOST_BYTES + 100
        assert PASSWORD[:3] not in said


def test_a_config_and_its_components_show_the_template():
    config = pipeline("p", [Telling(url=URL)], [], [Writing(url=URL)])

    assert "nats://app:${BUS_PASS}@bus:4222" in repr(config)
    assert config.dump()["inputs"] == [{"type": "telling", "url": URL.template}]


def hides(token: str, *, refuses: bool = False) -> Output:
    """Return an output with a credential that its config writes out."""

    def opens(ctx: Context, url: str) -> Sink:
        ctx.hide(token)
        if refuses:
            raise BuildRefused(Fault("conflict", f"{token} is not taken"))
        return Slow(ctx.clock, 0)

    return writes(opens)


def sending(id: str, *outputs: Output) -> PipelineConfig:
    return pipeline(id, [tells(lambda ctx, url: idle(ctx))], [], [*outputs])


@virtual
async def test_a_credential_that_is_written_out_is_let_go_of_when_the_last_that_has_it_is_deleted():
    it = engine()
    await run(it, sending("before", hides("another-one")))
    held = len(it.secrets.redact)
    await run(it, sending("one", hides("written-out"), hides("written-out")))
    await run(it, sending("two", hides("written-out")))

    await it.dispose("one")
    assert it.secrets.redact("written-out") == "***"

    await it.dispose("two")
    assert len(it.secrets.redact) == held
    assert it.secrets.redact(f"written-out another-one {PASSWORD}") == "written-out *** ${BUS_PASS}"
    await it.close()


@virtual
async def test_what_is_refused_at_the_build_shows_no_credential_and_keeps_none():
    it = engine()
    it.secrets.resolve(URL)
    held = len(it.secrets.redact)

    with pytest.raises(Refused) as refused:
        await it.compile(sending("p", hides("written-out", refuses=True)))

    assert "*** is not taken" in str(refused.value)
    assert len(it.secrets.redact) == held


@virtual
async def test_a_pipeline_that_fails_keeps_a_credential_until_its_sinks_are_finished():
    it = engine()
    seen: list[str] = []

    class Late(Slow):
        async def finish(self) -> None:
            await super().finish()
            seen.append(it.secrets.redact("written-out"))

    def opens(ctx: Context, url: str) -> Sink:
        ctx.hide("written-out")
        return Late(ctx.clock, 0)

    ends = tells(lambda ctx, url: Told(ctx.clock, [batches([1])], stays=False))
    await run(it, pipeline("p", [ends], [], [writes(opens)]))
    await it.clock.sleep(1)

    assert running(it, "p").status == "failed"
    assert seen == ["***"]
    assert it.secrets.redact("written-out") == "written-out"
    await it.close()


@virtual
async def test_a_sample_keeps_no_credential():
    it = engine()
    it.secrets.resolve(URL)
    held = len(it.secrets.redact)

    def reads(ctx: Context, url: str) -> Source:
        ctx.hide("written-out")
        ctx.warn("takes written-out")
        return Told(ctx.clock, [batches([1])])

    sample = await it.samples.take(tells(reads), most=1, seconds=1)

    assert isinstance(sample, Sample)
    assert sample.notes == ["takes ***"]
    assert len(it.secrets.redact) == held
