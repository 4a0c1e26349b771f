"""Configs: pipelines as they are written, whole files of them, and everything wrong with them.

Reading is pure: it resolves no secret, opens nothing and asks nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path as FilePath
from typing import Any

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.drafts import Draft, draft_of, is_refused, loaded
from headrace.compiler.component.families import Input, Output
from headrace.compiler.component.pipelineconfig import FAMILY_OF, PipelineConfig
from headrace.compiler.component.states import BucketDeclaration, undeclared
from headrace.compiler.config.connectionsfile import Filed, companion, misnamed, unresolved
from headrace.compiler.lint.remarks import remarks
from headrace.compiler.lint.rules import by_dependency, wrong_between, wrong_within
from headrace.compiler.schema.fields import AnyJson
from headrace.compiler.schema.records import Record, is_misspelt, json_type, option
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.schema.structures import ListOf, ObjectOf, RecordOf
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import (
    Diagnostic,
    Fault,
    in_file_order,
)
from headrace.compiler.text.documents import Document, Site


class ProgramShape(Record):
    """A config that is an object."""

    pipelines: tuple[Any, ...] = option(
        ListOf(AnyJson(), noun="pipeline"),
        "The pipelines, in any order.",
        elsewhere="flows jobs pipeline streams",
    )
    state: Mapping[str, BucketDeclaration] | None = option(
        ObjectOf(RecordOf(BucketDeclaration), noun="bucket"),
        "The buckets that pipelines remember in, by name.",
        default=None,
        elsewhere="buckets stores",
    )


@dataclass(frozen=True)
class Program:
    """All pipelines of a file, each after those it reads from, and the buckets it declares."""

    pipelines: tuple[PipelineConfig, ...]
    buckets: Mapping[str, BucketDeclaration] = field(default_factory=dict)
    site: Site = field(default=Site(), compare=False)
    """Where it is written; nowhere if built by hand."""

    def of_durable(self, fault: Fault) -> Iterator[Diagnostic]:
        """Yield a fault of each bucket that is to be kept on the disk."""
        for name, bucket in self.buckets.items():
            if bucket.durable:
                yield self.site.inside("state", name).diagnose(fault)

    @cached_property
    def named(self) -> Mapping[str, PipelineConfig]:
        """The pipelines that have an id, by it."""
        return {each.id: each for each in self.pipelines if each.id is not None}

    def asking(self) -> Iterator[tuple[str, int]]:
        """Yield the transforms that ask servers, by the id of their pipeline and by index."""
        return ((id, index) for id, each in self.named.items() for index in each.asking())


def load_program(
    document: Document,
    catalogue: Catalogue,
    *,
    connections: Mapping[str, Filed] | None = None,
    secrets: Secrets | None = None,
    base: FilePath | None = None,
    data_dir: FilePath | None = None,
) -> tuple[Program | None, list[Diagnostic]]:
    """Read a whole file: a list of pipelines, or an object that has it as ``pipelines``.

    All that is wrong is told at once, in file order, warnings included. The program is there unless
    one of the diagnostics is an error. Names of connections are judged by ``connections``, and
    references by ``secrets``, if they are given. ``base`` is the directory of the file, ``data_dir``
    that of all files that are written, where it is known.
    """
    listed = _listed(document)
    drafts, said = list[Draft](), listed.said
    for value, site in listed.sites():
        draft, wrong = draft_of(value, site, catalogue)
        drafts.append(draft)
        said += wrong
    order = by_dependency(drafts)
    said += _judged(
        drafts,
        order,
        connections=connections,
        secrets=secrets,
        buckets=listed.declared,
        is_list=isinstance(document.value, list),
        context=CheckContext(
            base,
            data_dir=data_dir,
            has_store=_names_store(drafts, listed.buckets),
            connections=connections or {},
        ),
    )
    if is_refused(said):
        return None, in_file_order(said)
    pipelines = tuple(_built(drafts[place]) for place in order)
    return Program(pipelines, listed.buckets, Site(document)), in_file_order(said)


def load_pipeline(
    document: Document,
    catalogue: Catalogue,
    *,
    running: Collection[str] = (),
    connections: Mapping[str, Filed] | None = None,
    buckets: Collection[str] | None = None,
    base: FilePath | None = None,
) -> tuple[PipelineConfig | None, list[Diagnostic]]:
    """Read one pipeline that is to run beside those that are ``running``.

    Whether its own id is free is for whoever runs it to say. Names of connections are judged by
    ``connections``, names of buckets by ``buckets``, if they are given. ``base`` is the directory
    that files are named from.
    """
    draft, said = draft_of(document.value, Site(document), catalogue)
    context = CheckContext(base)
    said += _judged(
        [draft], [0], running, connections=connections, buckets=buckets, context=context
    )
    config = None if is_refused(said) else _built(draft)
    return config, in_file_order(said)


@dataclass(frozen=True)
class _Listed:
    """What a whole file says: its pipelines as they are written, its buckets, what is wrong there.

    Of a file that is one pipeline ``is_alone`` says that it stands there without its list.
    ``declared`` are the names of the buckets, also of those with faults; None if nobody can tell.
    """

    site: Site
    pipelines: Sequence[Any] = ()
    buckets: Mapping[str, BucketDeclaration] = field(default_factory=dict)
    declared: Collection[str] | None = ()
    said: list[Diagnostic] = field(default_factory=list)
    is_alone: bool = False

    def sites(self) -> Iterator[tuple[Any, Site]]:
        """Yield every pipeline with where it is written."""
        for index, value in enumerate(self.pipelines):
            yield value, self.site if self.is_alone else self.site.inside(index)


def _listed(document: Document) -> _Listed:
    value, whole = document.value, Site(document)
    if isinstance(value, list):
        return _Listed(Site(document, called=("pipelines",)), value)
    if not isinstance(value, dict):
        return _Listed(whole, said=[whole.diagnose(_no_config(value))])
    # One pipeline, by its keys, also where they are those of other tools.
    others = PipelineConfig.other_keys()
    if "pipelines" not in value and any(
        others.get(key, key) in ("inputs", "outputs") for key in value
    ):
        said = [whole.diagnose(_no_config(value))]
        return _Listed(whole, [value], declared=None, said=said, is_alone=True)
    _, shape, faults = loaded(ProgramShape, value)
    # Rightly or wrongly declared; None if it cannot be told which are.
    declared = value.get("state", None if is_misspelt("state", faults) else {})
    return _Listed(
        whole.inside("pipelines"),
        shape.get("pipelines", ()),
        shape.get("state") or {},
        declared if isinstance(declared, dict) else None,
        [whole.diagnose(_with_hint(fault, value, document)) for fault in faults],
    )


def _with_hint(fault: Fault, value: Mapping[str, Any], document: Document) -> Fault:
    """Return a fault of the whole file with what to do, where it is laid out as other tools do it."""
    if fault.path == ("connections",):
        file = FilePath(document.file or "config.yaml")
        beside = companion(file, "connections").name
        return replace(fault, suggestion=f"put them in '{beside}', beside the config")
    if fault.path == ("pipelines",) and isinstance(value.get("pipelines"), dict):
        hint = "write a list, each name as the 'id' of its pipeline: [{ id: ..., inputs: [ ... ] }]"
        return replace(fault, suggestion=hint)
    return fault


def _no_config(value: Any) -> Fault:
    expected = "a list of pipelines, or an object that has it as 'pipelines'"
    found, hint = json_type(value), None
    if isinstance(value, dict):
        found = "one pipeline"
        hint = "put it in a list: in YAML '- ' before its first key and the rest indented, in JSON [ ... ]"
    return Fault("wrong-type", f"expected {expected}, found {found}", found, expected, hint)


def _judged(
    drafts: Sequence[Draft],
    order: Sequence[int],
    running: Collection[str] = (),
    *,
    connections: Mapping[str, Filed] | None,
    buckets: Collection[str] | None,
    secrets: Secrets | None = None,
    is_list: bool = False,
    context: CheckContext,
) -> Iterator[Diagnostic]:
    """Yield what is wrong or odd between pipelines and what they name, as far as it can be looked up."""
    for draft in drafts:
        yield from wrong_within(draft)
    yield from wrong_between(drafts, running)
    for part in (part for draft in drafts for part in draft.parts()):
        if connections is not None:
            yield from map(part.site.diagnose, misnamed(part.settings(), connections))
        if secrets is not None:
            yield from map(part.site.diagnose, unresolved(part.settings(), secrets))
    if buckets is not None:
        without_bucket = (
            site.diagnose(fault)
            for draft in drafts
            for site, setting in draft.settings()
            for fault in undeclared([setting], buckets, is_list=is_list)
        )
        yield from islice(without_bucket, FAULTS)
    for draft in drafts:
        yield from draft.examined(context)
    yield from remarks(drafts, order)


def _names_store(drafts: Sequence[Draft], buckets: Mapping[str, BucketDeclaration]) -> bool:
    """Return whether something is kept on the disk, as far as it could be read."""
    parts = [part.built for draft in drafts for part in draft.parts()]
    return (
        any(each.durable for each in buckets.values())
        or any(draft.dead_letters is not None for draft in drafts)
        or any(isinstance(each, Input) and each.is_durable for each in parts)
        or any(isinstance(each, Output) and (each.is_queued or each.leaves_parts) for each in parts)
    )


def _built(draft: Draft) -> PipelineConfig:
    """Return the config of a draft with which nothing is wrong."""
    built: dict[str, Any] = {
        name: tuple(part.built for part in getattr(draft, name)) for name in FAMILY_OF
    }
    config = PipelineConfig(
        id=draft.id, state=draft.state, dead_letters=draft.dead_letters, **built
    )
    return config.standing(draft.site)
