"""A pipeline that is written while others run: what is wrong with it among them."""

from __future__ import annotations

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.editing import load_edited
from headrace.compiler.config.program import load_program
from headrace.compiler.text.documents import read

KNOWN = catalogue()
RUNNING = """\
- { id: wells, inputs: [ { type: http } ] }
- { id: means, inputs: [ { type: pipeline, upstream: wells } ] }
- { inputs: [ { type: pipeline, upstream: means } ] }
"""


def running() -> dict[str, PipelineConfig]:
    program, _ = load_program(read(RUNNING, None, "yaml"), KNOWN)
    assert program is not None
    return {config.id or "gladly-quiet-heron": config for config in program.pipelines}


def edited(text: str, id: str | None = None) -> tuple[PipelineConfig | None, list[tuple[str, str]]]:
    config, said = load_edited(read(text, None, "yaml"), KNOWN, running=running(), id=id)
    return config, [(each.code, each.path) for each in said]


def reads(upstream: str, id: str) -> str:
    return f"{{ id: {id}, inputs: [ {{ type: pipeline, upstream: {upstream} }} ] }}"


def test_what_reads_one_that_runs_is_right() -> None:
    config, said = edited(reads("wells", "sums"))

    assert said == []
    assert config is not None
    assert config.id == "sums"


def test_a_new_one_cannot_have_an_id_that_is_taken() -> None:
    assert edited(reads("wells", "means")) == (None, [("duplicate", "id")])


def test_in_the_place_of_the_one_that_has_it_it_can() -> None:
    assert edited(reads("wells", "means"), "means")[1] == []


def test_it_cannot_have_another_id_than_the_one_in_whose_place_it_comes() -> None:
    config, said = load_edited(
        read(reads("wells", "sums"), None, "yaml"), KNOWN, running=running(), id="means"
    )

    assert config is None
    assert [(each.code, each.message, each.expected, each.replacement) for each in said] == [
        (
            "not-a-choice",
            "the id of this pipeline is 'means', and stays so",
            "'means', or no id",
            "means",
        )
    ]


@pytest.mark.parametrize("id", ["wells", "means", "gladly-quiet-heron"])
def test_it_may_leave_out_the_id_that_it_has_anyway(id: str) -> None:
    assert edited("inputs: [ { type: http } ]", id)[1] == []


@pytest.mark.parametrize(
    "text", [reads("means", "wells"), "inputs: [ { type: pipeline, upstream: means } ]"]
)
def test_a_ring_through_pipelines_that_run_is_told_where_it_closes(text: str) -> None:
    assert edited(text, "wells") == (None, [("cycle", "inputs[0].upstream")])


@pytest.mark.parametrize(
    "text", [reads("wells", "wells"), "inputs: [ { type: pipeline, upstream: wells } ]"]
)
def test_what_would_read_itself_is_told_once(text: str) -> None:
    assert edited(text, "wells") == (None, [("cycle", "inputs[0].upstream")])


def test_the_one_that_is_edited_closes_no_ring_with_what_it_was() -> None:
    assert edited("inputs: [ { type: http } ]", "means")[1] == []


def test_an_upstream_that_does_not_run_is_told() -> None:
    assert edited(reads("wels", "means"), "means") == (
        None,
        [("missing-upstream", "inputs[0].upstream")],
    )
