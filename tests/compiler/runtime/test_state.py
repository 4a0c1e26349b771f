"""Buckets of a running engine: declared by a load, shared by its pipelines, taken back with it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context, Step
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Transform
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration, PipelineState
from headrace.compiler.config.program import Program, load_program
from headrace.compiler.errors import BuildRefused, PipelineExists, Refused
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.fields import BucketName
from headrace.compiler.schema.records import option
from headrace.compiler.text.documents import Site, read
from tests.stand_ins import Kept, Told, batches, engine, pipeline, reads, running, takes
from tests.virtual import virtual


class Noting(Transform, kind="noting"):
    """Writes every batch into the pipeline's bucket, under the key ``last``."""

    def step(self, ctx: Context) -> Step:
        bucket = ctx.bucket()

        def step(batch):
            bucket.merge({"last": {"batch": batch}})
            return [batch]

        return step


class Looking(Transform, kind="looking"):
    """Hands on what a bucket holds instead of what arrives."""

    def step(self, ctx: Context) -> Step:
        bucket = ctx.bucket("shared")
        return lambda batch: [[dict(bucket.get("last") or {})]]


def with_state(config: PipelineConfig, bucket: str = "shared") -> PipelineConfig:
    return replace(config, state=PipelineState(bucket=bucket))


def declaring(*pipelines: PipelineConfig, **buckets: int) -> Program:
    """Return a program of pipelines, and of buckets with these bounds."""
    return Program(
        pipelines, {name: BucketDeclaration(max_keys=most) for name, most in buckets.items()}
    )


def writer(it: Engine, id: str = "writer", *batch: object) -> PipelineConfig:
    source = Told(it.clock, [batches([*batch] or [1])])
    return with_state(pipeline(id, [reads(source)], [Noting()]))


def shared(it: Engine) -> Bucket:
    bucket = it.state.get("shared")
    assert bucket is not None
    return bucket


@virtual
async def test_what_one_pipeline_writes_another_reads():
    it, kept = engine(), Kept()
    source = Told(it.clock, [1, batches(["look"])])
    reader = pipeline("reader", [reads(source)], [Looking()], [takes(kept)])

    await it.load(declaring(reader, writer(it, "writer", 7), shared=5))
    await it.clock.sleep(2)

    assert kept.batches == [[{"batch": [7]}]]
    await it.close()


@virtual
async def test_a_load_declares_the_buckets_of_its_program():
    it = engine()

    await it.load(declaring(b=0, a=3))

    assert [(each.name, each.bounds) for each in it.state] == [("a", Bounds(3)), ("b", Bounds(1))]


@virtual
async def test_an_engine_without_a_config_has_no_buckets():
    assert engine().state.names() == []


@virtual
async def test_a_pipeline_that_names_an_undeclared_bucket_is_refused_once_and_with_its_place():
    it = engine()
    text = "- id: writer\n  inputs: [{type: given}]\n  state: {bucket: shard}\n"
    source = Told(it.clock, [])
    read_from = PipelineConfig(
        id="writer",
        inputs=(reads(source),),
        transforms=(Noting(), Noting()),
        state=PipelineState(bucket="shard"),
    ).standing(Site(read(text, "plc.yaml", "yaml"), (0,), ("pipelines", 0)))
    await it.load(declaring(shared=5))

    with pytest.raises(Refused) as refused:
        await it.compile(read_from)

    [diagnostic] = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.path) == ("unknown-bucket", "pipelines[0].state.bucket")
    assert (diagnostic.file, diagnostic.line, diagnostic.column) == ("plc.yaml", 3, 19)
    assert diagnostic.suggestion == "did you mean 'shared'?"
    assert [*it.names()] == []


@virtual
async def test_state_that_nobody_uses_has_to_be_declared_as_well():
    it = engine()
    config = with_state(pipeline("idle", [reads(Told(it.clock, []))]))

    with pytest.raises(Refused, match=r"state.bucket: there is no bucket 'shared'"):
        await it.compile(config)


@virtual
async def test_a_component_that_needs_state_in_a_pipeline_without_is_refused():
    it = engine()

    with pytest.raises(Refused, match=r"the pipeline has no 'state'") as refused:
        await it.compile(pipeline("p", [reads(Told(it.clock, []))], [Noting()]))

    assert [each.path for each in refused.value.diagnostics] == ["transforms[0]"]


class Naming(Looking, kind="naming"):
    """Names the bucket that it looks at."""

    bucket: str = option(BucketName(), "Which.")


@virtual
async def test_a_component_that_names_a_bucket_that_is_not_there_is_refused_where_it_does():
    it = engine()

    with pytest.raises(Refused, match=r"there is no bucket 'shared'") as refused:
        await it.compile(pipeline("p", [reads(Told(it.clock, []))], [Naming(bucket="shared")]))

    assert [each.path for each in refused.value.diagnostics] == ["transforms[0].bucket"]


class Refusing(Transform, kind="refusing"):
    """Cannot be built."""

    def step(self, ctx: Context) -> Step:
        from headrace.compiler.text.diagnostics import Fault

        raise BuildRefused(Fault("conflict", "no"))


@virtual
async def test_a_refused_load_brings_back_the_buckets_from_before_with_what_they_hold():
    it = engine()
    await it.load(declaring(shared=5, gone=5))
    shared(it).merge({"a": {"n": 1}})
    refused = pipeline("p", [reads(Told(it.clock, []))], [Refusing()])

    with pytest.raises(Refused):
        await it.load(declaring(refused, shared=6, new=5))

    assert [(each.name, each.bounds.max_keys, len(each)) for each in it.state] == [
        ("gone", 5, 0),
        ("shared", 5, 1),
    ]
    assert [*it.names()] == []


@virtual
async def test_of_a_load_that_meets_a_running_pipeline_nothing_is_left():
    it = engine()
    await it.load(declaring(writer(it, "running"), shared=5))
    source = Told(it.clock, [batches([1])])

    with pytest.raises(PipelineExists):
        await it.load(
            declaring(pipeline("first", [reads(source)]), writer(it, "running"), shared=6)
        )

    assert [*it.names()] == ["running"]
    assert running(it, "running").status == "running"
    assert shared(it).bounds == Bounds(5)
    assert source.lives == 0
    assert await it.compile(pipeline("first", [reads(source)]))
    await it.close()


@virtual
async def test_a_cancelled_load_leaves_nothing():
    it, sink = engine(), Kept()

    async def never() -> None:
        await it.clock.sleep(100)

    sink.start = never  # type: ignore[method-assign]
    config = pipeline("p", [reads(Told(it.clock, []))], [], [takes(sink)])
    loading = asyncio.ensure_future(it.load(declaring(config, shared=5)))
    await it.clock.sleep(1)

    loading.cancel()
    await asyncio.gather(loading, return_exceptions=True)

    assert loading.cancelled()
    assert ([*it.names()], it.state.names()) == ([], [])


@virtual
async def test_the_next_load_keeps_what_unchanged_buckets_hold():
    it = engine()
    await it.load(declaring(writer(it), shared=10_000))
    await it.clock.sleep(1)
    await it.dispose("writer")

    await it.load(Program((), {"shared": BucketDeclaration()}))  # the same, not written out

    assert shared(it).get("last") == {"batch": [1]}


@virtual
async def test_a_bucket_outlives_the_pipelines_that_wrote_it():
    it = engine()
    await it.load(declaring(writer(it), shared=5))
    await it.clock.sleep(1)

    await it.dispose("writer")

    assert shared(it).get("last") == {"batch": [1]}


@virtual
async def test_a_config_file_that_loads_runs_with_its_buckets():
    it = engine()
    text = "state: {machines: {idle_timeout_secs: 60}}\npipelines: []\n"
    program, _ = load_program(read(text, None, "yaml"), Catalogue([]))
    assert program is not None

    await it.load(program)

    [bucket] = it.state
    assert (bucket.name, bucket.bounds) == ("machines", Bounds(10_000, 60))


@virtual
async def test_keys_expire_by_the_clock_of_the_engine():
    it = Engine(Clock(asyncio.get_running_loop()))
    await it.load(Program((), {"shared": BucketDeclaration(idle_timeout_secs=3600)}))
    shared(it).merge({"a": {"n": 1}})

    await it.clock.sleep(3600)

    assert len(shared(it)) == 0
