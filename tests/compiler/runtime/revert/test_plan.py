"""The plan of a revert: what it finds to be different, and what that costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.compiler.buckets import Bounds, Buckets, Entry
from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime.revert.plan import (
    BucketsPlan,
    ChangedPipeline,
    ConnectionsPlan,
    EmptiedBucket,
    PipelinesPlan,
    Plan,
    RemovedPipeline,
    buckets_plan,
)
from headrace.compiler.schema.secrets import Secret
from headrace.connectors.mqtt import MqttConnection
from headrace.connectors.network.tls import TlsFiles
from headrace.connectors.opcua import OpcuaConnection
from headrace.operators.buffer import Buffer
from headrace.operators.script import Script
from headrace.operators.script.sources import ScriptFile
from tests.compiler.runtime.reverts import Counting, Saying, Stage, Wire, flow, here, staged
from tests.doubles import StubContext
from tests.virtual import virtual


def why(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {each.id: each.why for each in plan.pipelines.changed}


@virtual
async def test_a_plan_changes_nothing() -> None:
    stage = staged()
    await stage.revert(flow("a"), flow("b"), connections={"bus": Wire(host="x")}, held=3)
    before = dict(stage.it.graph.pipelines)
    bucket = stage.it.state.get("held")

    plan = await stage.plan(flow("a", Saying(word=1)), flow("c"), held=4)

    assert (plan.pipelines.kept, plan.pipelines.added) == ((), ("c",))
    assert (why(plan), [each.id for each in plan.pipelines.removed]) == (
        {"a": ("transforms",)},
        ["b"],
    )
    assert stage.it.graph.pipelines == before
    assert (stage.it.state.get("held"), [*stage.it.connections]) == (bucket, ["bus"])
    assert len(stage.read) == 2
    await stage.it.close()


@virtual
async def test_a_plan_tells_what_is_held_and_in_flight() -> None:
    stage = staged()
    held = Buffer(seconds=60, max_messages=1000)
    await stage.revert(flow("changes", held), flow("goes", held), flow("stays", held))
    await stage.it.clock.sleep(1.05)

    plan = await stage.plan(flow("changes"), flow("stays", held))

    assert plan.pipelines.changed == (ChangedPipeline("changes", 10, 0, ("transforms",)),)
    assert plan.pipelines.removed == (RemovedPipeline("goes", 10, 0),)
    await stage.it.close()


@virtual
async def test_a_connection_that_changes_restarts_those_that_were_built_with_it() -> None:
    stage = staged()
    flows = [flow("a", connection="bus"), flow("b", connection="db"), flow("c")]
    await stage.revert(
        *flows, connections={"bus": Wire(host="x"), "db": Wire(host="x"), "old": Wire(host="x")}
    )

    plan = await stage.revert(
        *flows,
        connections={"bus": Wire(host="y"), "db": Wire(host="x", port=1), "new": Wire(host="x")},
    )

    assert (plan.pipelines.kept, why(plan)) == (("b", "c"), {"a": ("connection 'bus'",)})
    assert plan.connections == ConnectionsPlan(added=("new",), changed=("bus",), removed=("old",))
    assert [*stage.it.connections] == ["bus", "db", "new"]
    await stage.it.close()


@virtual
async def test_what_counts_is_the_connection_a_pipeline_was_built_with() -> None:
    stage = staged()
    await stage.revert(flow("a", connection="bus"), connections={"bus": Wire(host="x")})
    # As it is removed and filed again while nobody names it, and as a file would have it.
    stage.it.connections.replace({"bus": Wire(host="y")})

    plan = await stage.plan(flow("a", connection="bus"), connections={"bus": Wire(host="y")})
    assert (plan.connections.changed, why(plan)) == ((), {"a": ("connection 'bus'",)})

    plan = await stage.plan(flow("a", connection="bus"), connections={"bus": Wire(host="x")})
    assert (plan.connections.changed, plan.pipelines.kept) == (("bus",), ("a",))
    await stage.it.close()


@virtual
async def test_a_bucket_with_other_bounds_is_emptied_and_restarts_those_that_use_it() -> None:
    stage = staged()
    flows = [flow("a", Counting(bucket="small")), flow("b", Counting(bucket="large")), flow("c")]
    await stage.revert(*flows, small=10, large=10, gone=10)
    await stage.it.clock.sleep(1.05)

    plan = await stage.revert(*flows, small=5, large=10, new=1)

    assert (plan.pipelines.kept, why(plan)) == (("b", "c"), {"a": ("bucket 'small'",)})
    assert plan.buckets == BucketsPlan(
        kept=("large",),
        added=("new",),
        changed=(EmptiedBucket("small", 1, left_over=False),),
        removed=(EmptiedBucket("gone", 0, left_over=False),),
    )
    await stage.it.clock.sleep(1.04)
    assert stage.written("a") == [*range(1, 11), *range(1, 11)]
    assert stage.written("b") == [*range(1, 21)]
    assert stage.it.declarations["small"].max_keys == 5
    await stage.it.close()


@virtual
async def test_writing_a_default_out_changes_nothing_but_what_is_echoed() -> None:
    stage = staged()
    await stage.revert(flow("a", Saying(word=1), Counting(bucket="b")), b=BucketDeclaration())
    before = stage.pipeline("a")
    spelled_out = flow("a", Saying(word=1, seen="usual"), Counting(bucket="b"))

    plan = await stage.revert(
        spelled_out, b=BucketDeclaration(max_keys=10_000, idle_timeout_secs=0)
    )

    assert (plan.pipelines.kept, plan.buckets.kept) == (("a",), ("b",))
    assert stage.pipeline("a") is before
    assert before.config is spelled_out
    assert stage.it.declarations["b"].idle_timeout_secs == 0
    await stage.it.close()


@virtual
async def test_all_that_differs_is_told_by_its_path() -> None:
    stage = staged()
    await stage.revert(
        flow("a", Saying(word={"x": 1}), connection="bus"), connections={"bus": Wire(host="x")}
    )

    plan = await stage.plan(
        flow("a", Saying(word={"x": True}, seen="no"), connection="bus", word="m", into="b"),
        connections={"bus": Wire(host="y")},
    )

    assert why(plan)["a"] == (
        "inputs[0].word",
        "transforms[0].word.x",
        "transforms[0].seen",
        "outputs[0].word",
        "connection 'bus'",
    )
    await stage.it.close()


@virtual
async def test_pipelines_without_an_id_are_those_that_run_just_so() -> None:
    stage = staged()
    await stage.revert(
        flow(None, Saying(word=1)), flow(None, Saying(word=2)), flow(None, Saying(word=2))
    )
    ids = [*stage.it.names()]

    plan = await stage.revert(
        flow(None, Saying(word=2)), flow(None, Saying(word=1)), flow(None, Saying(word=2))
    )
    assert sorted(plan.pipelines.kept) == sorted(ids)

    plan = await stage.revert(flow(None, Saying(word=3)), flow(None, Saying(word=1)))
    assert plan.pipelines.kept == (ids[0],)
    assert sorted(each.id for each in plan.pipelines.removed) == sorted(ids[1:])
    assert {*plan.pipelines.added}.isdisjoint(ids)
    await stage.it.close()


@virtual
async def test_an_id_that_was_generated_and_is_in_the_file_by_now_is_the_same_pipeline() -> None:
    stage = staged()
    view = await stage.it.compile(flow(None, Saying(word=1)))

    plan = await stage.revert(
        flow(view.id, Saying(word=1), into="nameless"), flow(None, Saying(word=1))
    )

    assert plan.pipelines.kept == (view.id,)
    assert len(plan.pipelines.added) == 1
    await stage.it.close()


def scripted(stage: Stage) -> Script:
    return Script(source=ScriptFile(path="main.rhai"))


@virtual
async def test_a_script_that_was_edited_restarts_its_pipeline(tmp_path: Path) -> None:
    here(tmp_path, "main.rhai", 'import "lib" as lib; emit(lib::twice(msg));')
    here(tmp_path, "lib.rhai", "fn twice(n) { n * 2 }")
    here(tmp_path, "other.rhai", "emit(msg)")
    stage = staged(base=tmp_path)
    file = [flow("a", scripted(stage)), flow("b", Script(source=ScriptFile(path="other.rhai")))]
    await stage.revert(*file)

    here(tmp_path, "main.rhai", 'import "lib" as lib; emit(lib::twice(msg));')  # touched
    assert (await stage.plan(*file)).pipelines.kept == ("a", "b")

    here(tmp_path, "lib.rhai", "fn twice(n) { n * 3 }")
    plan = await stage.revert(*file)
    assert (plan.pipelines.kept, why(plan)) == (("b",), {"a": ("file 'lib.rhai'",)})
    assert (await stage.plan(*file)).pipelines.kept == ("a", "b")

    (tmp_path / "lib.rhai").unlink()
    assert why(await stage.plan(*file)) == {"a": ("file 'lib.rhai'",)}
    await stage.it.close()


@virtual
async def test_any_file_that_was_read_at_the_build_counts(tmp_path: Path) -> None:
    here(tmp_path, "ca.pem", "one")
    stage = staged(base=tmp_path)
    await stage.revert(flow("a", file="ca.pem"), flow("b"))

    here(tmp_path, "ca.pem", "two")

    assert why(await stage.plan(flow("a", file="ca.pem"), flow("b"))) == {"a": ("file 'ca.pem'",)}
    await stage.it.close()


@virtual
async def test_connections_tell_which_files_they_read(tmp_path: Path) -> None:
    names = ["ca.pem", "cert.pem", "key.pem", "server.der"]
    for name in names:
        here(tmp_path, name, "nothing of the kind")
    over_tls = MqttConnection(host="h", tls=True, cert_file="cert.pem", key_file="key.pem")
    opcua = OpcuaConnection(
        endpoint=Secret("opc.tcp://h:4840"),
        certificate="cert.pem",
        private_key="key.pem",
        server_certificate="server.der",
        security_policy="Basic256Sha256",
    )

    def read(build: Callable[[Context], object]) -> list[str]:
        ctx = StubContext(base=tmp_path)
        with pytest.raises(BuildRefused):
            build(ctx)
        return sorted(ctx.files)

    assert read(lambda ctx: ctx.read(TlsFiles("ca.pem"))) == ["ca.pem"]
    assert read(over_tls.tls_context) == ["cert.pem", "key.pem"]
    assert read(opcua.server) == ["cert.pem", "key.pem", "server.der"]


@virtual
async def test_what_a_durable_bucket_holds_is_left_over() -> None:
    before = Buckets(Clock(asyncio.get_running_loop()))
    before.declare({"kept": Bounds(is_durable=True), "other": Bounds(5, is_durable=True)})
    for bucket in before:
        bucket.entries["a"] = Entry({"n": 1}, 0)

    plan = buckets_plan(before, before.redeclared({"other": Bounds(6, is_durable=True)}))

    assert plan == BucketsPlan(
        kept=(),
        added=(),
        changed=(EmptiedBucket("other", 1, left_over=True),),
        removed=(EmptiedBucket("kept", 1, left_over=True),),
    )


def test_a_plan_in_short() -> None:
    plan = Plan(
        PipelinesPlan(
            kept=tuple(f"k{n}" for n in range(1200)),
            added=("a",),
            changed=tuple(ChangedPipeline(f"c{n}", 0, 0, ("x",)) for n in range(12)),
            removed=(),
        ),
        ConnectionsPlan((), ("bus",), ()),
        BucketsPlan(
            (),
            (),
            (EmptiedBucket("seen", 3000, left_over=False),),
            (EmptiedBucket("empty", 0, left_over=False), EmptiedBucket("kept", 2, left_over=True)),
        ),
    )

    named = ", ".join(f"'c{n}'" for n in range(10))
    assert str(plan) == (
        f"pipelines: 1 added ('a'), 12 changed ({named} and 2 more), 1,200 left alone,"
        " bucket 'seen' lost 3,000 keys, bucket 'kept' left over with 2 keys"
    )
