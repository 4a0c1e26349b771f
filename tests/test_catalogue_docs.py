"""What holds for every component: words for whoever edits a config, and a config that loads."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from headrace.authoring.configfiles import catalogue
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Component
from headrace.compiler.config.connectionsfile import ConnectionsFile
from headrace.compiler.config.program import load_program
from headrace.compiler.describe.editors import config_schema, connections_schema
from headrace.compiler.describe.reference import component_doc, prose
from headrace.compiler.schema.records import Record
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.documents import Document, read
from headrace.web.docs.components import path_of

DOCS = Path(__file__).parent.parent / "docs"
COMPONENTS = [*catalogue()]

CONFIG, CONNECTIONS = "config.yaml", "config.connections.yaml"
FENCED = re.compile(
    r"^```yaml\n(?:# (?P<file>\S+\.yaml)\n)?(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)

every_component = pytest.mark.parametrize(
    "component", COMPONENTS, ids=lambda component: f"{component.kind} {component.family}"
)


@cache
def known() -> Catalogue:
    return catalogue()


def page(component: type[Component]) -> str:
    """Return what somebody wrote about a component, without what is generated."""
    return (DOCS / path_of(component)).read_text().partition("<!-- generated -->")[0]


def examples(component: type[Component]) -> dict[str, Document]:
    """Return the files that the page of a component shows."""
    blocks = {found["file"] or CONFIG: found["text"] for found in FENCED.finditer(page(component))}
    return {file: read(text, file, "yaml") for file, text in blocks.items()}


def records(record: type[Record]) -> Iterator[type[Record]]:
    """Yield a record and everything that it holds, each once: some hold their own kind."""
    yield from dict.fromkeys(_held(record, set()))


def _held(record: type[Record], seen: set[type[Record]]) -> Iterator[type[Record]]:
    if record in seen:
        return
    seen.add(record)
    yield record
    for option in record.options().values():
        field: Any = option.field
        while isinstance(field, ListOf):
            field = field.inner
        if isinstance(field, RecordOf):
            yield from _held(field.record, seen)
        elif isinstance(field, VariantOf):
            yield field.union
            for variant in field.union.variants.values():
                yield from _held(variant, seen)


@every_component
def test_a_component_has_a_docstring(component: type[Component]) -> None:
    assert [record.__name__ for record in records(component) if not prose(record)] == []


@every_component
def test_a_field_has_a_sentence(component: type[Component]) -> None:
    said = [option.doc for record in records(component) for option in record.options().values()]
    said += [key["description"] for key in component_doc(component)["metadata"]]

    assert [text for text in said if not re.fullmatch(r"\S.*[^.]\.", text)] == []


@every_component
def test_a_component_has_a_page_with_words_of_its_own(component: type[Component]) -> None:
    title, *paragraphs = FENCED.sub("", page(component)).strip().split("\n\n")

    assert title == f"# {component.kind} ({component.family})"
    assert any(len(paragraph.split()) > 15 for paragraph in paragraphs)


@every_component
def test_the_config_of_a_page_loads_without_a_word(component: type[Component]) -> None:
    files = examples(component)

    connections, said = {}, []
    if CONNECTIONS in files:
        filing = ConnectionsFile(files[CONNECTIONS], known())
        built, said = filing.load()
        connections = filing.filed()
        assert built is not None
    program, more = load_program(files[CONFIG], known(), connections=connections)

    assert [*said, *more] == []
    assert program is not None
    used = [
        each for one in program.pipelines for each in (*one.inputs, *one.transforms, *one.outputs)
    ]
    assert component in map(type, [*used, *connections.values()])


@every_component
def test_the_config_of_a_page_satisfies_the_json_schema(component: type[Component]) -> None:
    files = examples(component)

    Draft202012Validator(config_schema(known())).validate(files[CONFIG].value)
    if CONNECTIONS in files:
        schema = connections_schema(known())
        Draft202012Validator(schema).validate(files[CONNECTIONS].value)


def test_there_is_no_page_of_a_component_that_is_gone() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.glob("components/*/*.md")}

    assert pages == {path_of(component) for component in COMPONENTS}
