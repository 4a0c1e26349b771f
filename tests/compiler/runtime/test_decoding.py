"""Which pipelines decode numbers as they are written: those that feed an output that wants it."""

from __future__ import annotations

import pytest

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.envelopes import Wrap
from headrace.compiler.component.families import Input, Output, Transform
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration, PipelineState
from headrace.compiler.config.program import Program
from headrace.compiler.edges import Sink
from headrace.compiler.errors import Refused
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.http import HttpInput
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.map import Map
from headrace.operators.recall import Recall
from headrace.operators.remember import Remember
from tests.operators.scripted import script
from tests.stand_ins import Kept, RawTold, engine, pipeline, reads, takes
from tests.virtual import virtual


class Decimals(Output, kind="decimals"):
    """An output that wants numbers as they were written, and keeps nothing."""

    def keeps_digits(self) -> bool:
        return True

    def open(self, ctx: Context) -> Sink:
        return Kept()


def posted(id: str, *outputs: Output, upstream: str | None = None) -> PipelineConfig:
    """Return a pipeline that is posted to, and that may read another one as well."""
    inputs: list[Input] = [HttpInput()]
    if upstream is not None:
        inputs.append(PipelineInput(upstream=upstream))
    return pipeline(id, inputs, [], outputs)


def stateful(
    id: str, *transforms: Transform, outputs: tuple[Output, ...] = (), bucket: str = "b"
) -> PipelineConfig:
    """Return a pipeline that is posted to and uses a bucket."""
    state = PipelineState(bucket=bucket)
    return PipelineConfig(
        id=id, inputs=(HttpInput(),), transforms=transforms, outputs=outputs, state=state
    )


def declaring(*pipelines: PipelineConfig) -> Program:
    return Program(pipelines, {"b": BucketDeclaration(), "other": BucketDeclaration()})


def keeping(it: Engine) -> set[str]:
    """Return the pipelines that keep the digits of what is posted to them."""
    ways_in = {id: it.way_in(id) for id in it.names()}
    return {
        id
        for id, way_in in ways_in.items()
        if way_in is not None and encode(way_in.ingress.decoding.decode(b"1.10")) == b"1.10"
    }


@virtual
async def test_only_a_pipeline_with_an_output_that_wants_it_keeps_digits():
    it = engine()
    await it.compile(posted("plain", takes(Kept())))
    await it.compile(posted("exact", takes(Kept()), Decimals()))

    assert keeping(it) == {"exact"}
    await it.close()


@virtual
async def test_what_feeds_it_does_so_as_long_as_it_is_there():
    it = engine()
    await it.compile(posted("above", takes(Kept())))
    seen = [keeping(it)]
    for _ in range(2):
        await it.compile(posted("below", Decimals(), upstream="above"))
        seen.append(keeping(it))
        await it.dispose("below")
        seen.append(keeping(it))

    assert seen == [set(), {"above", "below"}, set(), {"above", "below"}, set()]
    await it.close()


@virtual
async def test_so_does_what_feeds_that_but_nothing_beside_or_below_it():
    it = engine()
    await it.compile(posted("spring"))
    await it.compile(posted("brook", upstream="spring"))
    await it.compile(posted("beside", upstream="spring"))
    await it.compile(posted("mill", Decimals(), upstream="brook"))
    await it.compile(posted("below", upstream="mill"))

    assert keeping(it) == {"spring", "brook", "mill"}
    await it.dispose("brook")  # nothing of the spring reaches the mill
    assert keeping(it) == {"mill"}
    await it.compile(posted("brook", upstream="spring"))
    assert keeping(it) == {"spring", "brook", "mill"}
    await it.close()


@virtual
async def test_in_a_file_it_is_known_before_anything_is_read_whatever_the_order():
    it, kept = engine(), Kept()
    source = RawTold(it.clock, [[(b'{"n":1.10}', 0)]])
    above = pipeline("above", [reads(source)], [], [takes(kept)])

    await it.load(declaring(above, posted("below", Decimals(), upstream="above")))
    await it.clock.sleep(1)

    assert [encode(batch) for batch in kept.batches] == [b'[{"n":1.10}]']
    await it.close()


@virtual
async def test_a_pump_decodes_as_it_is_at_the_moment():
    it, kept = engine(), Kept()
    each = [(b'{"n":1.10}', 0)]
    source = RawTold(it.clock, [each, 10, each, 10, each])
    await it.compile(pipeline("above", [reads(source)], [], [takes(kept)]))

    await it.clock.sleep(5)
    await it.compile(posted("below", Decimals(), upstream="above"))
    await it.clock.sleep(10)
    await it.dispose("below")
    await it.clock.sleep(10)

    assert [encode(batch) for batch in kept.batches] == [
        b'[{"n":1.1}]',
        b'[{"n":1.10}]',
        b'[{"n":1.1}]',
    ]
    await it.close()


@virtual
async def test_with_an_envelope_as_well():
    it, kept = engine(), Kept()
    source = RawTold(it.clock, [[(b"1.10", 0)]])
    wrapped = reads(source, envelope=Wrap())

    await it.compile(pipeline("p", [wrapped], [], [takes(kept), Decimals()]))
    await it.clock.sleep(1)

    [batch] = kept.batches
    assert encode(batch).endswith(b'"value":1.10}]')
    await it.close()


@virtual
async def test_json_inside_a_string_is_decoded_so_too():
    it, kept = engine(), Kept()
    cast = Map.load({"mappings": [{"type": "cast", "from": "s", "to": "json", "as": "n"}]})
    each = [(b'{"s":"1.10"}', 0)]
    source = RawTold(it.clock, [each, 10, each])
    await it.compile(pipeline("above", [reads(source)], [cast], [takes(kept)]))
    await it.clock.sleep(5)

    await it.compile(posted("below", Decimals(), upstream="above"))
    await it.clock.sleep(10)

    assert [encode(batch) for batch in kept.batches] == [
        b'[{"s":"1.10","n":1.1}]',
        b'[{"s":"1.10","n":1.10}]',
    ]
    await it.close()


REMEMBER = Remember.load({"remember": [{"field": "n", "as": "n"}]})
RECALL = Recall.load({"recall": ["n"]})


@virtual
async def test_so_does_what_remembers_in_a_bucket_that_is_recalled_from():
    it = engine()
    await it.load(
        declaring(
            posted("spring"),
            PipelineConfig(
                id="writer",
                inputs=(HttpInput(), PipelineInput(upstream="spring")),
                transforms=(REMEMBER,),
                state=PipelineState(bucket="b"),
            ),
            stateful("elsewhere", REMEMBER, bucket="other"),
            stateful("reader", RECALL),
        )
    )
    assert keeping(it) == set()

    await it.compile(stateful("mill", RECALL, outputs=(Decimals(),)))
    assert keeping(it) == {"spring", "writer", "mill"}

    await it.dispose("mill")
    assert keeping(it) == set()
    await it.close()


@virtual
async def test_what_it_remembers_itself_is_nothing_to_those_that_remember_there():
    it = engine()

    await it.load(
        declaring(stateful("mill", REMEMBER, outputs=(Decimals(),)), stateful("writer", REMEMBER))
    )

    assert keeping(it) == {"mill"}
    await it.close()


@virtual
async def test_of_a_script_it_is_supposed_that_it_remembers_and_recalls():
    it = engine()

    await it.load(
        declaring(
            stateful("writer", script("emit(msg)")),
            stateful("mill", script("emit(msg)"), outputs=(Decimals(),)),
        )
    )

    assert keeping(it) == {"writer", "mill"}
    await it.close()


@virtual
async def test_two_that_recall_what_the_other_remembers_come_to_an_end():
    it = engine()

    await it.load(
        declaring(
            stateful("one", REMEMBER, RECALL),
            stateful("two", REMEMBER, RECALL, outputs=(Decimals(),)),
        )
    )

    assert keeping(it) == {"one", "two"}
    await it.close()


@virtual
@pytest.mark.parametrize("by_file", [False, True])
async def test_one_that_is_refused_leaves_everything_as_it_was(by_file):
    it = engine()
    await it.compile(posted("above"))
    below = posted("below", Decimals(), upstream="above")
    refused = pipeline("below", below.inputs, [RECALL], below.outputs)  # without a bucket

    with pytest.raises(Refused):
        await (it.load(declaring(refused)) if by_file else it.compile(refused))

    assert keeping(it) == set()
    await it.close()
