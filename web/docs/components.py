"""A component's page: its description, its keys, what they hold, and its metadata.

All of it is asked of the component's class, as the API's own reference is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.conditions import Condition
from headrace.compiler.component.families import FAMILIES, Component, Input
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.describe.reference import (
    component_doc,
    listed_options,
    promised_rows,
    prose,
)
from headrace.compiler.formats import CsvOptions
from headrace.compiler.schema import fields, structures, variants
from headrace.compiler.schema.records import Option, Record, dumped
from headrace.web.docs.failuretables import failure_table
from headrace.web.docs.markdown import RegionTexts, anchor, code, link, table

HEAD = ("key", "type", "default", "meaning")

_ADDITION = "*(An addition: the established format has no such key.)*"
_CLASSES = (
    "What its failures say: [what a class means](../../delivery.md#classes-of-failures). What has no row"
    " is `invalid`."
)
_DELIVERY = "What it promises, and [tests hold](../../delivery.md#tests)."
_NOTHING_TO_ACKNOWLEDGE = "It has nobody to acknowledge to, so `ack: on_delivery` is refused."


PAGES: Mapping[type[Record], str] = {Condition: "conditions.md", CsvOptions: "formats.md"}
"""What so many components take that it has a page of its own."""


def pages(catalogue: Catalogue) -> dict[str, RegionTexts]:
    """Return the generated parts of every component's page and of their index, by path."""
    pipeline = Sections()
    keys = pipeline.table(PipelineConfig.options().values())
    index = {
        "": _index(catalogue),
        "pipeline": "\n\n".join([keys, *pipeline.mentioned()]),
        "bucket": Sections().keys(BucketDeclaration),
    }
    return {
        "components/README.md": index,
        **{page: {"": Sections(record).section(record)} for record, page in PAGES.items()},
        **{path_of(component): {"": described(component)} for component in catalogue},
    }


def path_of(component: type[Component]) -> str:
    """Return where the page of a component is."""
    return f"components/{component.family}/{component.kind}.md"


def described(component: type[Component]) -> str:
    """Return what a component's page says by itself."""
    sections = Sections()
    blocks = [prose(component) or ""]
    if issubclass(component, Input) and not component.acknowledges:
        blocks.append(_NOTHING_TO_ACKNOWLEDGE)
    blocks += ["## Keys", *sections.all_keys(component), *sections.mentioned()]
    if metadata := component_doc(component)["metadata"]:
        rows = [(code(each["name"]), each["description"]) for each in metadata]
        blocks += ["## Metadata", "What an envelope attaches.", table(("key", "meaning"), rows)]
    promises = [
        (code(name), row.said(about, text))
        for row in promised_rows(component)
        for name, about, text in row.named(component)
    ]
    if promises:
        blocks += ["## Delivery", _DELIVERY, table(("promise", "what it says"), promises)]
    if component.failure_classes:
        blocks += ["## Classes of failures", _CLASSES, failure_table(component)]
    return "\n\n".join(blocks)


class Sections:
    """The tables of one page. What a key holds gets a section of its own, once, and is linked to."""

    def __init__(self, own: type[Record] | None = None) -> None:
        """Take what the page itself is about, if that is something that others link to."""
        self._own = own
        self._mentioned: list[type[Record]] = []

    def all_keys(self, component: type[Component]) -> Iterator[str]:
        """Yield the keys of a component, those of which exactly one is given apart."""
        if component.one_of:
            options = [component.options()[wire] for wire in component.one_of]
            yield "Exactly one of these."
            yield self.table(options)
        if listed_options(component):
            yield self.keys(component)
        elif not component.one_of:
            yield "It has none."

    def keys(self, record: type[Record]) -> str:
        """Return the table of a record's keys."""
        return self.table(listed_options(record))

    def table(self, options: Iterable[Option]) -> str:
        """Return a table of keys."""
        return table(HEAD, map(self._row, options))

    def mentioned(self) -> Iterator[str]:
        """Yield a section for everything that a table links to."""
        for record in self._mentioned:  # also what is mentioned on the way
            yield self.section(record)

    def section(self, record: type[Record]) -> str:
        """Return the section of something that a table links to."""
        return "\n\n".join(self._told(record))

    def _told(self, record: type[Record]) -> Iterator[str]:
        yield f"### {noun(record)}"
        if said := prose(record):
            yield said
        if not issubclass(record, variants.Tagged):
            yield self.keys(record)
            return
        yield "One of these, by its `type`:"
        for tag, variant in record.variants.items():
            yield f"**{code(tag)}**: {prose(variant)}"
            if variant.options():
                yield self.keys(variant)

    def _row(self, option: Option) -> tuple[str, str, str, str]:
        meaning = f"{option.doc} {_ADDITION}" if option.additive else option.doc
        return code(option.wire), self._type(option.field), _default(option), meaning

    def _type(self, field: Any) -> str:
        """Return what a key takes, in words."""
        match field:
            case structures.ListOf():
                return f"list of {self._type(field.inner)}"
            case structures.TrueOr():
                return f"{code('true')} | {self._linked(field.record)}"
            case structures.RecordOf():
                return self._linked(field.record)
            case variants.VariantOf():
                return self._linked(field.union)
            case fields.Choice():
                return " | ".join(map(code, field.words))
            case fields.Number():
                said = f"{field.type_name} {_bounds(field)}".rstrip()
                return f"{said} | {code('null')}" if field.is_null_told else said
            case fields.ConnectionName():
                return link(field.type_name, f"../connection/{field.connection_kind}.md")
            case fields.SecretText():
                return "string, may hold `${NAME}`"
            case fields.MessageField():
                return "dotted path"
        return str(field.type_name)

    def _linked(self, record: type[Record]) -> str:
        if record in PAGES and record is not self._own:
            return link(noun(record), f"../../{PAGES[record]}{anchor(noun(record))}")
        if record is self._own:
            return link(noun(record), anchor(noun(record)))
        if record not in self._mentioned:
            self._mentioned.append(record)
        return link(noun(record), anchor(noun(record)))


def noun(record: type[Record]) -> str:
    """Return what a record is called: ``input buffer``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", record.__name__).lower()


def _default(option: Option) -> str:
    if option.required:
        return "required"
    if option.default in (None, ()):
        return "-"
    value = dumped(option.default)
    return code(value if isinstance(value, str) else json.dumps(value))


def _bounds(field: fields.Number) -> str:
    signs = (("≥", field.min), (">", field.above), ("≤", field.max))
    return ", ".join(f"{sign} {json.dumps(bound)}" for sign, bound in signs if bound is not None)


def _index(catalogue: Catalogue) -> str:
    blocks = []
    for family in FAMILIES:
        told = {
            kind: " ".join((prose(component) or "").split())
            for kind, component in catalogue.family(family).items()
        }
        rows = [  # of each its first sentence
            (link(kind, f"{family}/{kind}.md"), re.split(r"(?<=\.)\s", said, maxsplit=1)[0])
            for kind, said in told.items()
        ]
        blocks += [f"## {family.capitalize()}s", table(("kind", "what it does"), rows)]
    return "\n\n".join(blocks)
