"""Replays over the API: dead letters go once more through a pipeline, and how far they have come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import falcon
import falcon.asgi
import msgspec

from headrace.compiler.component.drafts import loaded
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import Refused, UnknownPipeline
from headrace.compiler.jsontext import NotJson, decode, encode
from headrace.compiler.runtime.letterreplay.replayrequest import (
    RATE,
    ReplayRequest,
    ReplayTarget,
)
from headrace.compiler.runtime.monitoring.letterfigures import LETTER_STAGES
from headrace.compiler.runtime.monitoring.replayfigures import BegunReplay, ReplayFigures
from headrace.compiler.schema.fields import (
    AnyJson,
    Boolean,
    Choice,
    Identifier,
    Integer,
    Number,
    Text,
)
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.text.diagnostics import Fault, in_file_order
from headrace.compiler.text.documents import Site
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, document_of, read_json_body
from headrace.web.endpoint import BODY, FAILURE, Answer, Endpoint, refusals
from headrace.web.resources.dryruns import lent_to
from headrace.web.resources.letterdryruns import DeadLetterDryRun, of_letter
from headrace.web.resources.letters import HIGHEST, LETTERS_PATH
from headrace.web.service import Service

REPLAY_PATH = f"{LETTERS_PATH}/replay"
MOST_REPLAYED = 10_000
"""Ids of one replay: more are told by what they have in common."""
FASTEST, SLOWEST = 1_000_000, 0.001
"""Messages a second."""
REFUSED = "nothing is replayed"


class DeadLetterFilter(Record):
    """Which dead letters are meant: those of a stage, those with a message, of both, or all."""

    stage: str | None = option(Choice(*LETTER_STAGES), "Only those of this stage.", default=None)
    message: str | None = option(Text(), "Only those with exactly this message.", default=None)


class DeadLetterReplay(Record):
    """Which dead letters go once more through a pipeline: some `ids`, or what a `filter` finds."""

    ids: tuple[int, ...] | None = option(
        ListOf(Integer(min=1, max=HIGHEST), at_least=1, at_most=MOST_REPLAYED, noun="id"),
        f"The ids of dead letters, {MOST_REPLAYED:,} at most.",
        default=None,
    )
    filter: DeadLetterFilter | None = option(
        RecordOf(DeadLetterFilter),
        "In place of `ids`: what they have in common; `{}` is all.",
        default=None,
    )
    from_: str | None = option(
        Identifier(),
        "The pipeline whose dead letters they are, which may be deleted. Absent: the same.",
        default=None,
    )
    rate: float = option(
        Number(min=SLOWEST, max=FASTEST), "How many messages a second.", default=int(RATE)
    )
    component: int | None = option(
        Integer(),
        "The index of another transform, or output, that they go into: of the stage that they failed in.",
        default=None,
    )
    input_index: int | None = option(
        Integer(), "The index of an input where they arrive instead.", default=None
    )
    dry_run: bool = option(
        Boolean(),
        "Whether to tell what would become of the one letter that `ids` has, and do nothing.",
        default=False,
        additive=True,
    )
    messages: tuple[JsonValue, ...] | None = option(
        ListOf(AnyJson(), at_least=1, noun="message"),
        "What goes in the place of the messages of the one letter that `ids` has.",
        default=None,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse ids and a filter, neither, two places to go to, and messages for several letters."""
        if self.ids is None and self.filter is None:
            missing = "this key is required, or 'filter' in its place"
            yield Fault("missing-key", missing, expected="a list of at least one id", path=("ids",))
        elif self.ids is not None and self.filter is not None:
            said = "'ids' says which: 'filter' has no place beside it"
            yield Fault("conflict", said, expected="one of both", path=("filter",), on_key=True)
        if self.component is not None and self.input_index is not None:
            said = "'component' says where they go in: 'input_index' has no place beside it"
            yield Fault(
                "conflict", said, expected="one of both", path=("input_index",), on_key=True
            )
        if self.messages is not None and (self.ids is None or len(self.ids) != 1):
            said = "'messages' goes in the place of those of one dead letter"
            expected = "exactly one id in 'ids'"
            yield Fault("conflict", said, expected=expected, path=("messages",), on_key=True)
        if self.dry_run and (self.ids is None or len(self.ids) != 1):
            said, expected = "'dry_run' is of one dead letter", "exactly one id in 'ids'"
            yield Fault("conflict", said, expected=expected, path=("dry_run",), on_key=True)


class AskedReplay(NamedTuple):
    """What a body asks for."""

    replay: DeadLetterReplay
    messages: bytes | None
    """As they are written, so that numbers keep their digits."""


class _Written(msgspec.Struct):
    messages: msgspec.Raw = msgspec.Raw()


_WRITTEN = msgspec.json.Decoder(_Written)


async def begin_replay(
    service: Service, req: Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Begin to replay dead letters."""
    body = await read_json_body(req)
    asked = await req.in_turn(service.reading, asked_for, body)
    request = _request(pipeline_id, asked.replay)
    try:
        if asked.replay.dry_run:
            resp.data = await req.unless_gone(_dry_run(service, request, asked.messages))
            return
        begun = await service.engine.replay(request, asked.messages)
    except NotJson as cause:
        # Of what the pipeline refuses that others take there is nothing known; so it is told all the same.
        raise Refused((), f"{REFUSED}: messages: {cause}") from cause
    resp.data = encode(begun)
    resp.status = falcon.HTTP_202


async def _dry_run(service: Service, request: ReplayRequest, messages: bytes | None) -> bytes:
    look = await service.engine.look_at_replay(request, messages)
    config = service.engine.configs().get(request.pipeline)
    if config is None:
        raise UnknownPipeline(request.pipeline)
    dry_run = lent_to(service, b"")
    return await service.dry_runs.run(lambda limit: encode(of_letter(look, config, dry_run, limit)))


async def get_replay(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Answer how far the last replay has come."""
    resp.data = encode(await service.engine.replay_figures(pipeline_id))


async def stop_replay(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, pipeline_id: str
) -> None:
    """Have the replay that is under way send no more."""
    await service.engine.stop_replay(pipeline_id)
    resp.status = falcon.HTTP_204


def asked_for(body: bytes) -> AskedReplay:
    """Return what a body asks for. In a message the last of several equal keys counts, as in ingest.

    Raises:
        MalformedBody: it is not JSON.
        Refused: with all that is wrong with it.
    """
    document, twice = document_of(body)
    site = Site(document)
    asked, _, faults = loaded(DeadLetterReplay, document.value)
    wrong = [one for one in twice if not one.path.startswith("messages[")]
    wrong += map(site.diagnose, faults)
    if asked is None or wrong:
        raise Refused(in_file_order(wrong), REFUSED)
    if asked.messages is None:
        return AskedReplay(asked, None)
    messages = bytes(_WRITTEN.decode(body).messages)
    try:
        decode(messages)
    except NotJson as cause:
        fault = Fault("wrong-type", f"it is refused as a message: {cause}", path=("messages",))
        raise Refused([site.diagnose(fault)], REFUSED) from cause
    return AskedReplay(asked, messages)


def _request(pipeline: str, asked: DeadLetterReplay) -> ReplayRequest:
    filter = asked.filter or DeadLetterFilter()
    at = asked.input_index
    options: dict[str, Any] = {"target": None if at is None else ReplayTarget("input", at)}
    return ReplayRequest(
        pipeline,
        pipeline if asked.from_ is None else asked.from_,
        asked.ids,
        filter.stage,
        filter.message,
        component=asked.component,
        rate=asked.rate,
        **options,
    )


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path=REPLAY_PATH,
        operation="replayDeadLetters",
        tag="dead letters",
        access=Access.ADMIN,
        summary="Send dead letters once more through a pipeline: what goes through is deleted.",
        body=DeadLetterReplay,
        example={"filter": {"stage": "output"}, "rate": 50},
        responses={
            200: Answer("With `dry_run`: what would become of the letter.", DeadLetterDryRun),
            202: Answer("It has begun, and goes on by itself.", BegunReplay),
            **BODY,
            **refusals(
                _404="No pipeline runs under the id; or the one letter with other messages, or of a dry"
                " run, is not there.",
                _409="One is under way in the pipeline; it does not run, or has no `dead_letters`; or what"
                " they are to go into is not there, and the answer says what is.",
                _422="The body is not such a request, and the answer says why; or `component` is named for"
                " letters of several stages.",
                _503="Too many bodies wait to be read, or dry runs for their turn, or the disk cannot be"
                " read; try again later.",
            ),
        },
        respond=begin_replay,
    ),
    Endpoint(
        method="GET",
        path=REPLAY_PATH,
        operation="getReplay",
        tag="dead letters",
        access=Access.READ,
        summary="Read how far the replay in a pipeline has come, or the last one had.",
        responses={
            200: Answer(
                "How far it has come; or the last one had. `null`: there was none.",
                ReplayFigures | None,
            )
        },
        respond=get_replay,
    ),
    Endpoint(
        method="DELETE",
        path=REPLAY_PATH,
        operation="stopReplay",
        tag="dead letters",
        access=Access.ADMIN,
        summary="Stop the replay in a pipeline. What was sent and has not left stays a dead letter.",
        responses={
            204: Answer("It sends no more."),
            **refusals(_404="None is under way.", _500=FAILURE),
        },
        respond=stop_replay,
    ),
)
