"""Drafts: as much of a pipeline as can be read, however much is wrong with the rest.

A rule across components can so be judged while some of them have faults of their own, and
everything is told at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from marshmallow import ValidationError

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.deadletteroptions import (
    LETTERS_KEPT,
    DeadLetterKeeping,
    DeadLetterOptions,
)
from headrace.compiler.component.families import FAMILIES, Component
from headrace.compiler.component.pipelineconfig import FAMILY_OF, PipelineConfig
from headrace.compiler.component.states import PipelineState
from headrace.compiler.schema.fields import ConnectionName
from headrace.compiler.schema.records import Record, UnknownKey, faults_of, is_misspelt
from headrace.compiler.schema.structures import Setting, settings
from headrace.compiler.schema.variants import untagged, variant_named
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import (
    Diagnostic,
    Fault,
    Severity,
    path_text,
)
from headrace.compiler.text.documents import Site

_R = TypeVar("_R", bound=Record)


@dataclass(frozen=True)
class DraftComponent:
    """One component, as far as it could be read.

    ``component`` is its class, or `Component` itself if its `type` is unknown; ``values`` are the
    options that are right, by wire name; ``built`` is there when nothing is wrong.
    """

    site: Site
    component: type[Component]
    values: Mapping[str, Any]
    built: Component | None

    def settings(self) -> Iterator[Setting]:
        """Yield its single settings: path, field, value."""
        return settings(self.component, self.values)

    def __str__(self) -> str:
        """Say which it is: ``transforms[1] (reducer, line 31)``."""
        line = self.site.line()
        about = self.component.kind + (f", line {line}" if line is not None else "")
        return f"{path_text(self.site.called[-2:])} ({about})"


@dataclass(frozen=True)
class Draft:
    """One pipeline, as far as it could be read."""

    site: Site
    id: str | None
    inputs: tuple[DraftComponent, ...]
    transforms: tuple[DraftComponent, ...]
    outputs: tuple[DraftComponent, ...]
    state: PipelineState | None = None
    state_values: Mapping[str, Any] = field(default_factory=dict)
    """The options of its state that are right, by wire name."""
    has_state: bool = False
    """Whether it gives one, right or wrong."""
    dead_letters: DeadLetterKeeping = None

    def settings(self) -> Iterator[tuple[Site, Setting]]:
        """Yield all single settings, those of its components included, each from where it stands."""
        named = settings(PipelineState, self.state_values)
        yield from ((self.site.inside("state"), each) for each in named)
        for part in self.parts():
            yield from ((part.site, each) for each in part.settings())

    def examined(self, around: CheckContext) -> Iterator[Diagnostic]:
        """Yield what its components object to in what surrounds them."""
        context = replace(around, has_state=self.has_state)
        for part in self.parts():
            if part.built is not None:
                yield from map(part.site.diagnose, part.built.examine(context))

    def parts(self) -> Iterator[DraftComponent]:
        """Yield all its components."""
        for name in FAMILY_OF:
            yield from getattr(self, name)


def draft_of(value: Any, site: Site, catalogue: Catalogue) -> tuple[Draft, list[Diagnostic]]:
    """Read a pipeline, and tell all that is wrong with it and each of its components."""
    # What is read here has documents in its lists: the catalogue knows what each of them is.
    _, shape, faults = loaded(PipelineConfig, value)
    said = [site.diagnose(fault) for fault in faults]
    state = shape.get("state")
    is_given = isinstance(value, dict) and value.get("state") is not None
    known: dict[str, Any] = {
        "state": state if isinstance(state, PipelineState) else None,
        "state_values": state.values() if isinstance(state, PipelineState) else state or {},
        "has_state": is_given or is_misspelt("state", faults),
        "dead_letters": _kept_of(shape.get("dead_letters")),
    }
    for name, family in FAMILY_OF.items():
        parts = []
        for index, item in enumerate(shape.get(name, ())):
            if len(said) >= FAULTS:  # a text made to be wrong must not cost more than that
                break
            part, wrong = part_of(item, site.inside(name, index), family, catalogue)
            parts.append(part)
            said += wrong
        known[name] = tuple(parts)
    return Draft(site, shape.get("id"), **known), said


def _kept_of(value: Any) -> DeadLetterKeeping:
    """Return what a pipeline says of its dead letters, as far as it could be read."""
    if value is None or value is True or isinstance(value, DeadLetterOptions):
        return value
    return LETTERS_KEPT


def part_of(
    value: Any, site: Site, family: str, catalogue: Catalogue
) -> tuple[DraftComponent, list[Diagnostic]]:
    """Read one component of a family, and tell all that is wrong with it."""
    try:
        component = variant_named(value, catalogue.family(family))
    except ValidationError as error:
        said = [site.diagnose(_at_home(fault, value, catalogue)) for fault in faults_of(error)]
        return DraftComponent(site, Component, {}, None), said
    built, values, faults = loaded(component, untagged(value))
    said = [site.diagnose(_of_connection(fault, component, catalogue)) for fault in faults]
    return DraftComponent(site, component, values, built), said


def is_refused(said: Iterable[Diagnostic]) -> bool:
    """Return whether one of the diagnostics is more than a warning."""
    return any(diagnostic.severity is Severity.ERROR for diagnostic in said)


def loaded(record: type[_R], value: Any) -> tuple[_R | None, Mapping[str, Any], list[Fault]]:
    """Read a record: it, or at least those of its options that are right, and what is wrong."""
    try:
        built = record.load(value)
    except ValidationError as error:
        valid = error.valid_data if isinstance(error.valid_data, dict) else {}
        return None, valid, list(faults_of(error))
    return built, built.values(), []


def _of_connection(fault: Fault, component: type[Component], catalogue: Catalogue) -> Fault:
    """Say so if an unknown key is one of the connection that the component names."""
    if not isinstance(fault, UnknownKey) or fault.suggestion is not None or len(fault.path) != 1:
        return fault
    for known in component.options().values():
        if isinstance(known.field, ConnectionName):
            kind, key = known.field.connection_kind, str(fault.path[0])
            connection = catalogue.family("connection").get(kind, Component)
            if key in connection.options() or key in connection.other_keys():
                hint = f"'{key}' belongs in the {kind} connection that '{known.wire}' names"
                return replace(fault, suggestion=hint)
    return fault


def _at_home(fault: Fault, value: Any, catalogue: Catalogue) -> Fault:
    """Say so if the kind is one of another family."""
    if fault.code != "unknown-kind" or not isinstance(value["type"], str):
        return fault
    homes = [family for family in FAMILIES if value["type"] in catalogue.family(family)]
    hint = f"'{value['type']}' is a kind of {' and '.join(homes)}"
    return replace(fault, suggestion=hint) if homes else fault
