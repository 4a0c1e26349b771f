"""The component reference as data: what `GET /api/docs` answers and the pages of docs/ are made of.

Everything comes from the component classes: docstrings, options, metadata. There is no second list.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.envelopes import SHARED_METADATA
from headrace.compiler.component.families import Component, Input
from headrace.compiler.component.promises import Promises
from headrace.compiler.schema.fields import Strict
from headrace.compiler.schema.records import Option, Record
from headrace.compiler.schema.structures import RecordOf
from headrace.compiler.schema.variants import Tagged

# What follows a docstring's prose is for whoever reads the code.
_HEADING = re.compile(r"^(Shape|Units|Raises|Source):", re.MULTILINE)

Within = tuple[type[Tagged], ...]
"""The unions inside which something is described."""


def component_docs(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return a ComponentDoc for every component, in the order of the reference."""
    return [component_doc(component) for component in catalogue]


def component_doc(component: type[Component]) -> dict[str, Any]:
    """Return the ComponentDoc of one component."""
    attached = {**SHARED_METADATA, **component.attaches} if issubclass(component, Input) else {}
    exclusive = [component.options()[wire] for wire in component.one_of]
    variants = [
        {"name": option.wire, "fields": _option_docs(option.field.record)}
        for option in exclusive
        if isinstance(option.field, RecordOf)
    ]
    others = [
        _field_doc(option.wire, option.field, option.doc, option.required)
        for option in exclusive
        if not isinstance(option.field, RecordOf)
    ]
    return {
        "kind": component.kind,
        "family": component.family,
        "description": prose(component),
        "fields": [*others, *_option_docs(component)],
        "variants": variants,
        "metadata": [{"name": name, "description": said} for name, said in attached.items()],
        "promises": [
            {"name": name, "when": row.when.lstrip(", "), "about": about, "text": text}
            for row in promised_rows(component)
            for name, about, text in row.named(component)
        ],
        "failures": [
            {
                "name": name,
                "class": row.failure,
                "codes": [*map(str, row.codes)],
                "text": row.what,
                "mark": row.mark,
                "source": row.source or None,
            }
            for name, row in component.failure_classes.named(component)
        ],
    }


def promised_rows(component: type[Component]) -> list[Promises]:
    """Return the rows of what a kind promises, what waits before an input behind the others."""
    rows: dict[Promises, None] = dict.fromkeys(component.promises)
    if issubclass(component, Input):
        waiting = (row.waiting for row in component.promises if row.waiting is not None)
        rows |= dict.fromkeys(waiting)
    return [*rows]


def prose(record: type[Record]) -> str | None:
    """Return what the docstring of a record tells its users, or None when there is none."""
    written = inspect.cleandoc(record.__doc__ or "")
    if written.startswith(f"{record.__name__}("):  # the signature, put there for want of words
        return None
    text = _HEADING.split(written, maxsplit=1)[0].strip()
    return text.replace("``", "`") or None


def listed_options(record: type[Record]) -> list[Option]:
    """Return the options as the reference lists them.

    The required ones as declared, then the optional ones by name. Those that a whole family shares
    close the list; those of which exactly one is given (`Component.one_of`) are variants instead.
    """
    shared = Input.options() if issubclass(record, Input) else {}
    apart = {*shared, *getattr(record, "one_of", ())}
    own = [option for wire, option in record.options().items() if wire not in apart]
    required = [option for option in own if option.required]
    optional = sorted((option for option in own if not option.required), key=lambda o: o.wire)
    return [*required, *optional, *shared.values()]


def _option_docs(record: type[Record], within: Within = ()) -> list[dict[str, Any]]:
    return [
        _field_doc(option.wire, option.field, option.doc, option.required, within)
        for option in listed_options(record)
    ]


def _field_doc(
    name: str,
    field: Any,
    description: str | None = None,
    required: bool = True,
    within: Within = (),
) -> dict[str, Any]:
    return {
        "name": name,
        "type_name": field.type_name,
        "field_type": _field_type(field, within),
        "description": description,
        "required": required,
    }


def _field_type(field: Strict, within: Within) -> Any:
    match field.field_type:
        case {"list": inner}:
            return {"list": _field_doc("", inner, within=within)}
        case {"object": record}:
            return {"object": _option_docs(record, within)}
        case {"union": root} if root in within:  # told already, and it has no end
            return "json"
        case {"union": root}:
            tagged = [
                {"name": tag, "fields": _option_docs(variant, (*within, root))}
                for tag, variant in root.variants.items()
            ]
            return {"union": {"tag": "type", "variants": tagged}}
        case plain:
            return plain
