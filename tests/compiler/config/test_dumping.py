"""The running graph as documents: in which order, and when two of them are the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.config.dumping import Snapshot, dumped_connections
from headrace.compiler.config.program import load_pipeline
from headrace.compiler.text.documents import read

KNOWN = scan("headrace.operators", "headrace.connectors")


def loaded(document: dict[str, Any]) -> PipelineConfig:
    running = ["a", "b", "c", "d", "z", "gone"]
    config, said = load_pipeline(read(json.dumps(document), None, "json"), KNOWN, running=running)
    assert config is not None, said
    return config


def reading(*upstreams: str, **rest: Any) -> PipelineConfig:
    """Return a pipeline that reads others, or nobody."""
    inputs = [{"type": "pipeline", "upstream": each} for each in upstreams]
    return loaded({"inputs": inputs or [{"type": "http"}], **rest})


def constant(value: Any) -> PipelineConfig:
    mapping = {"type": "constant", "as": "n", "value": {"type": "number", "value": value}}
    return reading(transforms=[{"type": "map", "mappings": [mapping]}])


@pytest.mark.parametrize(
    ("graph", "order"),
    [
        ({}, []),
        ({"b": (), "a": (), "C": ()}, ["C", "a", "b"]),
        ({"a": ("z",), "z": ()}, ["z", "a"]),
        ({"a": ("gone",), "b": ("a",)}, ["a", "b"]),
        ({"a": ("d",), "b": (), "c": ("b", "a"), "d": ()}, ["b", "d", "a", "c"]),
        ({"d": (), "a": ("b",), "b": ("a",), "c": ("a",)}, ["d", "a", "b", "c"]),
    ],
    ids=["nothing", "by id", "after what it reads", "a reader of nobody", "in rounds", "a circle"],
)
def test_the_order_of_pipelines(graph: dict[str, tuple[str, ...]], order: list[str]) -> None:
    snapshot = Snapshot({id: reading(*upstreams) for id, upstreams in graph.items()})

    assert snapshot.order() == order
    assert [each["id"] for each in snapshot.config()] == order


def test_with_buckets_the_document_is_an_object_that_has_them_first() -> None:
    buckets = {"b": BucketDeclaration(), "a": BucketDeclaration.load({"max_keys": 10_000})}

    document = Snapshot({"p": reading()}, {}, buckets).config()

    assert [*document] == ["state", "pipelines"]
    assert [*document["state"].items()] == [("a", {"max_keys": 10_000}), ("b", {})]
    assert document["pipelines"][0]["id"] == "p"


def test_connections_are_called_by_their_aliases_wherever_they_are_named() -> None:
    config = loaded(
        {
            "inputs": [{"type": "nats", "connection": "bus", "subject": "a"}],
            "outputs": [
                {"type": "nats", "connection": "bus", "subject": "b"},
                {"type": "nats", "connection": "other", "subject": "bus"},
            ],
        }
    )

    [document] = Snapshot({"p": config}).config({"bus": "alias"})

    assert document["inputs"][0]["connection"] == "alias"
    assert [each["connection"] for each in document["outputs"]] == ["alias", "other"]
    assert document["outputs"][1]["subject"] == "bus"


def test_connections_are_in_the_order_of_their_names_with_their_templates() -> None:
    kinds = KNOWN.family("connection")
    filed: Any = {
        "z": kinds["nats"].load({"urls": "nats://${USER}:sesame@bus:4222"}),
        "a": kinds["file"].load({"root": "data"}),
    }

    assert [*dumped_connections(filed).items()] == [
        ("a", {"type": "file", "root": "data"}),
        ("z", {"type": "nats", "urls": "nats://${USER}:sesame@bus:4222"}),
    ]


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        (reading(), reading(), False),
        (reading(), reading(id="p"), False),  # it runs under the same one
        (reading(), reading(outputs=[{"type": "stdout"}]), True),
        (constant(1), constant(1), False),
        (constant(1), constant(1.0), True),
        (constant(0.0), constant(-0.0), True),
    ],
)
def test_pipelines_differ_when_they_are_written_differently(
    one: Any, other: Any, differ: bool
) -> None:
    assert Snapshot({"p": one}).differs_from(Snapshot({"p": other})) is differ
    assert not Snapshot({"p": one}).is_made_of(Snapshot({"p": other}))


def test_a_password_in_a_url_makes_a_difference() -> None:
    def posting(password: str) -> PipelineConfig:
        return reading(outputs=[{"type": "http", "url": f"https://ann:{password}@h.example/"}])

    one, other = Snapshot({"p": posting("a")}), Snapshot({"p": posting("b")})

    assert one.differs_from(other)


def test_more_fewer_and_others_make_a_difference_and_order_does_not() -> None:
    a, b = reading(), reading()
    whole = Snapshot({"a": a, "b": b}, {}, {"x": BucketDeclaration()})

    assert not whole.differs_from(Snapshot({"b": b, "a": a}, {}, {"x": BucketDeclaration()}))
    assert whole.differs_from(Snapshot({"a": a}, {}, whole.buckets))
    assert whole.differs_from(Snapshot(whole.pipelines))
    assert whole.is_made_of(Snapshot({"b": b, "a": a}, {}, whole.buckets))
    assert not whole.is_made_of(Snapshot(whole.pipelines))
