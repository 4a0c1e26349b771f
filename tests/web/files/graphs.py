"""Random graphs: every component, from the examples of its page, with other values wherever they fit.

What a component refuses is not tried further: the example it started from stands instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st
from marshmallow import ValidationError

from headrace.authoring.configfiles import catalogue
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import Component, Connection
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.config.dumping import Snapshot
from headrace.compiler.config.program import load_pipeline
from headrace.compiler.schema import fields
from headrace.compiler.schema.fields import is_blank
from headrace.compiler.schema.records import Record
from headrace.compiler.schema.structures import ListOf, ObjectOf, RecordOf, settings_of
from headrace.compiler.schema.urls import HttpUrl
from headrace.compiler.schema.variants import VariantOf, untagged
from headrace.compiler.text.documents import read
from headrace.compiler.text.writing import write
from tests.test_catalogue_docs import CONNECTIONS, examples

ODD = [
    *("null", "yes", "1.0", "- a", "#x", "a: b", " padded ", "line\nbreak", "ü 日本", "it's", '"'),
    *(
        "12:30",
        "~",
        "a/b",
        "..",
        "${NAME}",
        "x" * 300,
        "\x07",
        "\u2028",
        "\t",
        "*a",
        "&a",
        "|",
        "!",
    ),
]
_COMPONENT = re.compile(r"(\w+)\[(\d+)\]")

texts = st.one_of(st.sampled_from(ODD), st.text(max_size=8))
numbers = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([10**30, -0.0, 1e16]),
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)


def known() -> Catalogue:
    """Return every component."""
    return all_components()


@cache
def all_components() -> Catalogue:
    return catalogue()


@cache
def samples() -> Mapping[type[Component], list[dict[str, Any]]]:
    """Return the objects of each component that the pages show, connections by their names."""
    found: dict[type[Component], list[dict[str, Any]]] = {each: [] for each in known()}
    for component in known():
        for file, document in examples(component).items():
            if file == CONNECTIONS:
                shown = [("connection", each) for each in document.value.values()]
            else:
                value = document.value
                pipelines = value["pipelines"] if isinstance(value, dict) else value
                shown = [
                    (family, each)
                    for pipeline in pipelines
                    for family in ("input", "transform", "output")
                    for each in pipeline.get(f"{family}s", [])
                ]
            for family, each in shown:
                found[known().family(family)[each["type"]]].append(each)
    return found


@st.composite
def components(draw: st.DrawFn, component: type[Component]) -> dict[str, Any]:
    """Draw a config object of one component."""
    given = draw(st.sampled_from(samples()[component]))
    other = {"type": component.kind, **draw(altered(component, untagged(given)))}
    try:
        component.load(untagged(other))
    except ValidationError:
        return given
    return other


@st.composite
def altered(draw: st.DrawFn, record: type[Record], given: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the options of a record, each of which the record takes together with what is given."""
    values = dict(given)
    for wire, option in record.options().items():
        drawn = (
            {} if isinstance(option.field, _NAMES) else draw(replaced(option.field, wire, values))
        )
        try:
            record.load({**values, **drawn})
        except ValidationError:
            continue
        values |= drawn
    return values


_NAMES = (fields.ConnectionName, fields.PipelineId)
_ANY: dict[type, st.SearchStrategy[Any]] = {
    fields.AnyJson: json_values,
    fields.Boolean: st.booleans(),
    fields.Number: numbers,
    fields.Integer: st.integers(0, 2**70),
    HttpUrl: st.sampled_from(["https://user:p%40ss@h.example/a?b=c#".rstrip("#"), "http://h:1"]),
}


def replaced(field: Any, wire: str, given: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return what an option may be: as it is, or something else of its type."""
    as_it_is = st.just({wire: given[wire]} if wire in given else {})
    return st.one_of(as_it_is, drawn(field, given.get(wire)).map(lambda value: {wire: value}))


def drawn(field: Any, given: Any) -> st.SearchStrategy[Any]:
    """Return values of the type of a field, most of which it takes."""
    if isinstance(field, RecordOf):
        return altered(field.record, given if isinstance(given, dict) else {})
    if isinstance(field, VariantOf):
        return st.sampled_from([*field.union.variants.items()]).flatmap(
            lambda variant: altered(variant[1], {}).map(lambda rest: {"type": variant[0], **rest})
        )
    if isinstance(field, ListOf):
        return st.lists(drawn(field.inner, None), max_size=3)
    if isinstance(field, ObjectOf):
        return st.dictionaries(texts, drawn(field.inner, None), max_size=3)
    if isinstance(field, fields.Choice):
        return st.sampled_from(field.words)
    return _ANY.get(type(field), texts)


ids = texts.filter(lambda text: not is_blank(text))


@st.composite
def pipelines(draw: st.DrawFn, id: str, before: list[str]) -> PipelineConfig | None:
    """Draw a pipeline that may read those from before; None where its parts do not go together."""
    listed: dict[str, Any] = {"id": id}
    for family, least in (("input", 1), ("transform", 0), ("output", 0)):
        kinds = st.sampled_from([*known().family(family).values()])
        listed[f"{family}s"] = draw(st.lists(kinds.flatmap(components), min_size=least, max_size=2))
    for each in listed["inputs"]:
        if "upstream" in each and before:
            each["upstream"] = draw(st.sampled_from(before))
    if draw(st.booleans()):
        listed["state"] = {"bucket": "machines", "key": draw(ids)}
    return accepted(listed, before)


def accepted(listed: dict[str, Any], running: list[str]) -> PipelineConfig | None:
    """Return the pipeline without the components that do not go together with the others."""
    while True:
        document = read(write(listed, "json"), None, "json")
        config, said = load_pipeline(document, known(), running=running)
        wrong = {found.groups() for one in said if (found := _COMPONENT.match(one.path))}
        if config is not None or not wrong:
            return config
        for name in ("inputs", "transforms", "outputs"):
            parts = enumerate(listed[name])
            listed[name] = [each for place, each in parts if (name, str(place)) not in wrong]


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw what may run: pipelines that read each other, the connections they name, buckets."""
    running: dict[str, PipelineConfig] = {}
    for id in draw(st.lists(ids, max_size=3, unique=True)):
        if (config := draw(pipelines(id, [*running]))) is not None:
            running[id] = config
    filed = {
        name: draw(connections(kind))
        for config in running.values()
        for _, kind, name in config.namings()
    }
    declared = draw(st.dictionaries(ids, buckets, max_size=2))
    for name in sorted({name for config in running.values() for name in needed(config)}):
        declared[name] = draw(buckets)
    return Snapshot(running, filed, declared)


def needed(config: PipelineConfig) -> Iterator[str]:
    """Yield the buckets that a pipeline names."""
    parts = [*config.inputs, *config.transforms, *config.outputs, *filter(None, [config.state])]
    for part in parts:
        yield from (
            name for _, field, name in settings_of(part) if isinstance(field, fields.BucketName)
        )


@st.composite
def connections(draw: st.DrawFn, kind: str) -> Connection:
    """Draw a connection of a kind that can be filed."""
    component = known().family("connection")[kind]
    given = st.sampled_from(samples()[component])
    for each in draw(components(component)), draw(given):
        connection = component.load(untagged(each))
        if not [*connection.examine(CheckContext())]:
            break
    assert isinstance(connection, Connection)
    return connection


buckets = st.fixed_dictionaries(
    {}, optional={"max_keys": st.integers(0, 10**6), "idle_timeout_secs": st.integers(0, 10**6)}
).map(BucketDeclaration.load)
