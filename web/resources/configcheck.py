"""Checks: what is wrong with a config that somebody is writing, as if it were given to the server now.

No secret is resolved, and nothing is opened or changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.connectionsfile import load_connections
from headrace.compiler.config.editing import load_edited
from headrace.compiler.config.program import load_program
from headrace.compiler.errors import UnknownPipeline
from headrace.compiler.jsontext import encode
from headrace.compiler.schema.fields import Choice, Identifier, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.text import diagnostics
from headrace.compiler.text.decoding import Format
from headrace.compiler.text.diagnostics import Fault, Severity, in_file_order, path_text
from headrace.compiler.text.documents import Document, Judge, Unreadable, read, understood
from headrace.web import apierror
from headrace.web.apierror import Diagnostic
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, WrongBody, read_json_body, received
from headrace.web.endpoint import BODY, Answer, Endpoint, refusals
from headrace.web.service import Service

LARGEST = 512 * 1024
"""Bytes of a body: a scalar that is longer holds the interpreter for too long while it is read."""
MOST_VALUES = 10_000
"""Values of a text: while the garbage collector looks through more of them, nothing else is done."""
MOST_DIAGNOSTICS = 1000
"""Diagnostics that are told, errors before warnings."""
MOST_CHARACTERS = 1024 * 1024
"""Characters of the paths whose places are told, all together."""

DocumentKind = Literal["config", "pipeline", "connections"]


class CheckRequest(Record):
    """A text that is to be a config, or a part of one."""

    text: str = option(Text(), "What is checked, as it would stand in a file.")
    format: Format = option(Choice("json", "yaml"), "How it is written.", default="yaml")
    document: DocumentKind = option(
        Choice("config", "pipeline", "connections"),
        "What it is to be: a whole config, one pipeline, or a file of connections.",
        default="config",
    )
    id: str | None = option(
        Identifier(),
        "Of a `pipeline`: whose place it is to take, of those that run. Left out, it is a new one.",
        default=None,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse an id where it says nothing."""
        if self.id is not None and self.document != "pipeline":
            message = f"'id' says nothing of a document '{self.document}'"
            yield Fault("conflict", message, expected="'document': 'pipeline'", path=("id",))


class ConfigCheck(msgspec.Struct):
    """What is wrong with a text, and where its values stand."""

    diagnostics: Annotated[
        list[Diagnostic],
        Meta(description=f"At most {MOST_DIAGNOSTICS:,}: of more, errors before warnings."),
    ]
    places: Annotated[
        Mapping[str, Sequence[Count]],
        Meta(
            description="By path, as diagnostics have it: line, column, end_line and end_column of each "
            "value, from its key on if it has one; in the order of the text."
        ),
    ]


@dataclass(frozen=True)
class CheckBasis:
    """What a config is judged by: what there was on the server when somebody asked."""

    catalogue: Catalogue
    running: Mapping[str, PipelineConfig]
    connections: Mapping[str, Connection]
    buckets: Sequence[str]
    base: Path | None
    data_dir: Path | None

    def judge(self, asked: CheckRequest) -> Judge:
        """Return what reads a document of that kind.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        if asked.id is not None and asked.id not in self.running:
            raise UnknownPipeline(asked.id)
        judges: Mapping[DocumentKind, Any] = {
            "config": partial(
                load_program, connections=self.connections, base=self.base, data_dir=self.data_dir
            ),
            "pipeline": partial(
                load_edited,
                running=self.running,
                id=asked.id,
                connections=self.connections,
                buckets=self.buckets,
                base=self.base,
            ),
            "connections": partial(load_connections, context=CheckContext(data_dir=self.data_dir)),
        }
        return partial(judges[asked.document], catalogue=self.catalogue)


async def check_config(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Answer what is wrong with a text. It is read in a thread, and no longer than anybody waits."""
    body = await read_json_body(req, LARGEST)
    engine = service.engine
    basis = CheckBasis(
        service.catalogue,
        engine.configs(),
        dict(engine.connections),
        sorted(engine.declarations),
        engine.base,
        engine.data_dir,
    )
    work = service.checks.run(lambda _: encode(checked(body, basis)))
    resp.data = await req.unless_gone(work)


def checked(body: bytes, basis: CheckBasis) -> ConfigCheck:
    """Return what is wrong with the text in a body.

    Raises:
        MalformedBody, WrongBody: the request is wrong in itself.
        UnknownPipeline: nobody runs under its id.
    """
    found = received(body, CheckRequest)
    asked = found.record
    if asked is None or found.wrong:
        raise WrongBody(in_file_order(found.wrong), "nothing was checked")
    judge = basis.judge(asked)
    said: list[diagnostics.Diagnostic] = []
    document: Document | None
    try:
        document = read(asked.text, None, asked.format, MOST_VALUES)
    except Unreadable as cause:
        said, document = understood(cause, judge)
    if document is None:
        return ConfigCheck(_told(said), {})
    _, wrong = judge(document)
    is_list = asked.document == "config" and isinstance(document.value, list)
    return ConfigCheck(_told([*said, *wrong]), _places(document, ("pipelines",) if is_list else ()))


def _told(said: Sequence[diagnostics.Diagnostic]) -> list[Diagnostic]:
    """Return diagnostics as the API shows them, as many as there is room for."""
    errors_first = sorted(said, key=lambda each: each.severity is not Severity.ERROR)
    return apierror.shown(in_file_order(errors_first[:MOST_DIAGNOSTICS]))


def _places(document: Document, called: diagnostics.Path) -> dict[str, Sequence[int]]:
    """Return where the values of a document stand, as many as there is room for."""
    told, characters = dict[str, Sequence[int]](), 0
    for path, place in document.ranges():
        name = path_text((*called, *path))
        characters += len(name)
        if characters > MOST_CHARACTERS:
            break
        told[name] = [each or 0 for each in place]
    return told


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path="/api/config/check",
        operation="checkConfig",
        tag="config",
        access=Access.ADMIN,
        summary="Tell what is wrong with a config, a pipeline or connections. Nothing is opened.",
        body=CheckRequest,
        example={
            "text": "inputs:\n  - type: http\ntransforms:\n  - type: buffer\n    secnds: 5\n",
            "document": "pipeline",
        },
        responses={
            200: Answer("What is wrong with it, which may be nothing.", ConfigCheck),
            **BODY,
            **refusals(
                _400="The body is not JSON or not such a request.",
                _413=f"The body is larger than {LARGEST // 1024} KiB.",
                _404="No pipeline under that id.",
                _503="Too many checks wait for their turn; try again later.",
            ),
        },
        respond=check_config,
    ),
)
