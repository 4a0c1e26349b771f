"""Samples: a few messages of an input, before there is a pipeline that reads it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import falcon.asgi
import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.compiler.annotated import Count
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.drafts import Draft, DraftComponent, is_refused, part_of
from headrace.compiler.component.families import Input
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import Refused
from headrace.compiler.jsontext import encode
from headrace.compiler.lint.rules import wrong_between, wrong_within
from headrace.compiler.runtime.sampling import Sample, Unbuilt, Unread
from headrace.compiler.schema.fields import Integer
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ComponentOf
from headrace.compiler.text.diagnostics import Diagnostic, Fault, in_file_order
from headrace.compiler.text.documents import Site
from headrace.compiler.text.suggest import one_of
from headrace.web import apierror
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, WrongBody, read_json_body, received
from headrace.web.endpoint import BODY, Answer, Endpoint, refusals
from headrace.web.resources.dryruns.dryrun_requests import SHAPE
from headrace.web.service import Service

MOST_MESSAGES = 50
MOST_MILLISECONDS = 30_000


class SampleRequest(Record):
    """An input, and how much of it is wanted."""

    input: Any = option(ComponentOf("input"), "What is read, as a pipeline would: any but `http`.")
    max_messages: int = option(
        Integer(),
        f"How many messages are enough; at least 1 and at most {MOST_MESSAGES} are read.",
        default=5,
    )
    timeout_ms: int = option(
        Integer(),
        f"How long it may take, in milliseconds; at most {MOST_MILLISECONDS} are waited.",
        default=5000,
    )


SampleNotes = Annotated[
    list[str],
    Meta(description="What was different from a pipeline, what was skipped, what went wrong."),
]
SampleStage = Annotated[Literal["build", "read"], Meta(title="SampleStage")]


class SampleSampled(msgspec.Struct, tag_field="outcome", tag="sampled"):
    """What arrived."""

    messages: Annotated[list[JsonValue], Meta(description="In the order they arrived.")]
    notes: SampleNotes
    waited_ms: Count


class SampleFailed(msgspec.Struct, tag_field="outcome", tag="failed", kw_only=True):
    """Why nothing could be read."""

    stage: SampleStage
    message: str
    diagnostics: (
        Annotated[
            list[apierror.Diagnostic],
            Meta(description="All that is wrong with the input, at the stage `build`."),
        ]
        | UnsetType
    ) = UNSET
    notes: SampleNotes


SampleResponse = Annotated[SampleSampled | SampleFailed, Meta(title="SampleResponse")]


@dataclass(frozen=True)
class Asked:
    """What is asked for, as far as it makes sense."""

    site: Site
    """Where the input is told."""
    input: Input | None
    objections: Sequence[Diagnostic]
    """What is wrong with an input that has the right shape; without any it is there."""
    most: int = 0
    seconds: float = 0.0
    notes: Sequence[str] = ()


async def sample_input(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Read a few messages of an input, as a pipeline would, and leave no trace of that."""
    body = await read_json_body(req)
    engine = service.engine
    # In a thread, and one at a time, as every config that is sent.
    asked = await req.in_turn(
        service.reading, read_request, body, service.catalogue, [*engine.names()], engine.base
    )
    if asked.input is None:
        resp.data = encode(_not_built(asked.objections, asked.notes))
        return
    sampling = engine.sample(asked.input, asked.most, asked.seconds)
    if (taken := await req.unless_gone(sampling)) is not None:
        resp.data = encode(_told(taken, asked))


def _told(taken: Sample | Unbuilt | Unread, asked: Asked) -> SampleSampled | SampleFailed:
    notes = [*asked.notes, *taken.notes]
    match taken:
        case Unbuilt(faults):
            return _not_built([asked.site.diagnose(fault) for fault in faults], notes)
        case Unread(reason):
            return SampleFailed(stage="read", message=reason, notes=notes)
        case Sample(messages, _, seconds):
            return SampleSampled([*messages], notes, int(seconds * 1000))


def _not_built(wrong: Sequence[Diagnostic], notes: Sequence[str]) -> SampleFailed:
    return SampleFailed(
        stage="build",
        message=" ".join(str(Refused(wrong[:1])).split()),
        diagnostics=apierror.shown(wrong),
        notes=[*notes],
    )


def read_request(
    body: bytes, catalogue: Catalogue, running: Collection[str], base: Path | None
) -> Asked:
    """Read what is asked for, while these pipelines are ``running``.

    Raises:
        MalformedBody: it is not JSON.
        WrongBody: with all that is wrong with its shape, or the input cannot be sampled.
    """
    found = received(body, SampleRequest)
    asked, wrong = found.record, [*found.wrong]
    said, part = list[Diagnostic](), None
    if "input" in found.values:
        site = found.site.inside("input")
        part, said = part_of(found.values["input"], site, "input", catalogue)
        wrong += [*_unsampled(part, catalogue), *(each for each in said if each.code in SHAPE)]
    if asked is None or part is None or wrong:
        raise WrongBody(in_file_order(dict.fromkeys([*wrong, *said])), "no sample could be taken")
    draft = Draft(part.site, None, (part,), (), ())
    said += [
        *wrong_within(draft),
        *wrong_between([draft], running),
        *draft.examined(CheckContext(base)),
    ]
    most = min(max(asked.max_messages, 1), MOST_MESSAGES)
    millis = min(asked.timeout_ms, MOST_MILLISECONDS)
    numbers = [
        ("max_messages", asked.max_messages, most),
        ("timeout_ms", asked.timeout_ms, millis),
    ]
    return Asked(
        part.site,
        part.built if isinstance(part.built, Input) and not is_refused(said) else None,
        [each for each in in_file_order(said) if is_refused([each])],
        most,
        millis / 1000,
        [
            f"'{name}' {given:,} is read as {read:,}"
            for name, given, read in numbers
            if given != read
        ],
    )


def _unsampled(part: DraftComponent, catalogue: Catalogue) -> Iterator[Diagnostic]:
    """Yield why no sample can be taken of a kind."""
    kind = part.component
    if issubclass(kind, Input) and kind.unsampled:
        inputs = (each for each in catalogue.family("input").values() if issubclass(each, Input))
        fault = Fault(
            "not-a-choice",
            f"an input of the kind '{kind.kind}' cannot be sampled: {kind.unsampled}",
            f'"{kind.kind}"',
            one_of([each.kind for each in inputs if not each.unsampled]),
            path=("type",),
        )
        yield part.site.diagnose(fault)


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path="/api/inputs/sample",
        operation="sampleInput",
        tag="pipelines",
        access=Access.ADMIN,
        summary="Read a few messages of an input as a pipeline would, and leave no trace of that.",
        body=SampleRequest,
        example={"input": {"type": "dummy", "duration": 1}, "max_messages": 1, "timeout_ms": 2000},
        responses={
            200: Answer("What arrived, or why nothing could be read.", SampleResponse),
            **BODY,
            **refusals(
                _400="The body is not JSON or not such a request, or no sample can be taken of the input.",
                _503="Too many samples are being taken; try again later.",
            ),
        },
        respond=sample_input,
    ),
)
