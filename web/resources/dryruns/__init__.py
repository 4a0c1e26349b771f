"""The dry runs: what a chain, or a script, would do with messages, while nothing that runs is touched."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import falcon.asgi
from msgspec import UNSET

from headrace.authoring.dryrun.run import (
    MOST_MESSAGES,
    NAME,
    ChainDryRun,
    Failure,
    GivenBatch,
)
from headrace.authoring.playing.playedenvironment import Surroundings
from headrace.compiler.buckets import Values
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.states import PipelineState, undeclared_bucket
from headrace.compiler.errors import Refused
from headrace.compiler.jsontext import decode, encode
from headrace.compiler.runtime.limitedthreads import MOST_SECONDS, TimeLimit, TookTooLong
from headrace.compiler.runtime.monitoring.bucketfigures import BucketContents, BucketPage
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.operators.script.compiling import ScriptFailed
from headrace.web import apierror
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, read_json_body
from headrace.web.endpoint import BODY, Answer, Endpoint, refusals
from headrace.web.resources.dryruns.dryrun_answers import (
    DryRunEmitted,
    DryRunFailed,
    DryRunResponse,
    Excerpt,
    PipelineDryRunFailed,
    PipelineDryRunRan,
    PipelineDryRunResponse,
)
from headrace.web.resources.dryruns.dryrun_requests import (
    LIVE,
    Chain,
    DryRunRequest,
    GivenMessages,
    PipelineDryRunRequest,
    read_chain,
    read_script,
    unread,
)
from headrace.web.service import Service

MOST_COPIED = 2000
"""Keys of a bucket that are copied, those written last: more of them would hold up what runs."""
MOST_COPIED_BYTES = 2 * 1024 * 1024
"""Bytes after which no further one is copied."""

NOT_COMPILED = "not-compiled"
"""The one refusal of a script that is the doing of its author, and not of who asks."""

_READINGS = [{"machine": "press", "celsius": 81.5}, {"machine": "oven", "celsius": 20}]
"""What the examples of requests send."""

log = logging.getLogger("headrace.web")


@dataclass(frozen=True)
class DryRun:
    """One dry run: what it is about, and what is lent to it of a server that goes on meanwhile."""

    body: bytes
    catalogue: Catalogue
    surroundings: Surroundings
    started_at: datetime
    declared: Collection[str] = ()
    """The buckets of the server."""
    copied: Callable[[str], BucketContents | None] = lambda name: None
    """Gives what was written last to one of them. To be asked in the thread of the dry run."""


DryRunAnswer = DryRunEmitted | DryRunFailed | PipelineDryRunRan | PipelineDryRunFailed
Answered = Callable[[DryRun, TimeLimit], DryRunAnswer]


async def dry_run_pipeline(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Answer what each transform of a chain would hand on."""
    resp.data = await _answered(service, req, of_chain)


async def dry_run_script(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Answer what a script would emit."""
    resp.data = await _answered(service, req, of_script)


async def _answered(service: Service, req: Request, answered: Answered) -> bytes | None:
    """Do a dry run in a thread, from the reading of its body to the writing of its answer.

    When its client leaves it is given up, also while it waits for its turn.
    """
    dry_run = lent_to(service, await read_json_body(req))
    work = service.dry_runs.run(lambda limit: encode(answered(dry_run, limit)))
    return await req.unless_gone(work)


def lent_to(service: Service, body: bytes) -> DryRun:
    """Return a dry run with what is lent to it of the server that runs."""
    engine = service.engine
    surroundings = Surroundings(dict(engine.connections), engine.secrets, engine.base)
    loop = asyncio.get_running_loop()

    def copied(name: str) -> BucketContents | None:
        asked = engine.bucket(name, BucketPage(MOST_COPIED, MOST_COPIED_BYTES))
        return asyncio.run_coroutine_threadsafe(asked, loop).result(MOST_SECONDS)

    return DryRun(
        body,
        service.catalogue,
        surroundings,
        service.clock.now(),
        sorted(engine.declarations),
        copied,
    )


def of_chain(dry_run: DryRun, limit: TimeLimit) -> PipelineDryRunRan | PipelineDryRunFailed:
    """Return what a chain would do with messages.

    Raises:
        MalformedBody, WrongBody: the request is wrong in itself.
        TookTooLong: reading it has taken all the time.
    """
    chain = read_chain(dry_run.body, dry_run.catalogue, dry_run.surroundings)
    _in_time(limit)
    if chain.objections:
        return _not_built(chain, chain.objections)
    seeds, left_out = _seeds(chain, dry_run)
    run = ChainDryRun(
        chain.transforms,
        dry_run.surroundings,
        limit,
        state=chain.asked.state,
        seeds=seeds,
        is_traced=chain.asked.attribution,
    )
    if (messages := chain.asked.count) > MOST_MESSAGES:
        log.warning("dry run: the first %d of %d messages are used", MOST_MESSAGES, messages)
    run.perform(
        [*_first(chain.asked.batches)],
        started_at=dry_run.started_at,
        advance_seconds=chain.asked.advance_seconds,
    )
    if run.refusals:
        return _not_built(
            chain,
            [
                (index, chain.site.inside("transforms", index).diagnose(fault))
                for index, fault in run.refusals
            ],
        )
    return _performed(chain, run, left_out)


def _first(batches: Sequence[GivenMessages]) -> Iterator[GivenBatch]:
    """Yield as many messages as are used."""
    left = MOST_MESSAGES
    for each in batches:
        yield each.at, [*each.messages[:left]]
        left -= min(len(each.messages), left)


def _seeds(chain: Chain, dry_run: DryRun) -> tuple[Mapping[str, Values], list[str]]:
    """Return what the bucket holds at the start, and a note if that is not all it was to hold.

    Raises:
        WrongBody: it is to be a copy of a bucket that the server does not have.
    """
    seeds, state = chain.asked.buckets, chain.asked.state
    if seeds != LIVE or state is None:
        return (seeds if isinstance(seeds, Mapping) else {}), []
    if (found := copied_of(dry_run, state.bucket)) is None:
        fault = undeclared_bucket(state.bucket, dry_run.declared)
        raise unread([chain.site.inside("state", "bucket").diagnose(fault)])
    return found


def copied_of(dry_run: DryRun, bucket: str) -> tuple[Mapping[str, Values], list[str]] | None:
    """Return a copy of a bucket of the server, and a note if that is not all of it; None: it has none."""
    found = dry_run.copied(bucket) if bucket in dry_run.declared else None
    if found is None:
        return None
    # The latest came first, and is to be the one that is written last.
    copy = {each.key: decode(bytes(each.values)) for each in reversed(found.entries)}
    rest = found.keys - len(copy)
    note = (
        f"bucket '{found.name}': the {len(copy):,} keys written last are copied, {rest:,} are not"
    )
    return copy, [note] if rest else []


def _in_time(limit: TimeLimit) -> None:
    """Go on if reading the request has left any time."""
    if limit.is_over:
        raise TookTooLong(limit.seconds)


def _not_built(chain: Chain, objections: Sequence[tuple[int, Diagnostic]]) -> PipelineDryRunFailed:
    at, first = objections[0]
    return PipelineDryRunFailed(
        at,
        chain.parts[at].component.kind,
        "build",
        str(Refused([first])),
        apierror.shown(each for _, each in objections),
        stages=[],
        warnings=_remarks(chain),
        notes=[],
        left=[] if chain.asked.attribution else UNSET,
    )


def _performed(
    chain: Chain, run: ChainDryRun, notes: Sequence[str]
) -> PipelineDryRunRan | PipelineDryRunFailed:
    excerpt = Excerpt([*_notes(chain), *notes])
    is_traced, failure = chain.asked.attribution, run.failure
    is_timed = chain.asked.given_ is not None
    stages = [excerpt.stage(stage, is_traced, is_timed) for stage in run.completed]
    logged = [f"{stage.place}: {text}" for stage in run.stages for text in run.warnings(stage)]
    warnings = [*_remarks(chain), *logged]
    told: PipelineDryRunRan | PipelineDryRunFailed
    if failure is None:
        entries = excerpt.entries(chain.asked.state, run.remembered)
        told = PipelineDryRunRan(stages, entries, warnings, excerpt.notes)
    else:
        kind = chain.parts[failure.at].component.kind
        told = PipelineDryRunFailed(
            failure.at, kind, failure.phase, failure.message, [], stages, warnings, excerpt.notes
        )
    if is_traced:
        told.left = excerpt.left(run, is_timed)
    return told


def _remarks(chain: Chain) -> list[str]:
    return [f"{each.path}: {each.message}" for each in chain.remarks]


def _notes(chain: Chain) -> Iterator[str]:
    """Yield what is not as one might think, whatever happens."""
    if (count := chain.asked.count) > MOST_MESSAGES:
        yield f"only the first {MOST_MESSAGES} of {count:,} messages were used"
    if chain.asked.buckets and chain.asked.state is None:
        yield "'buckets' counts for nothing without 'state'"
    for index, transform in enumerate(chain.transforms):
        if transform.acts:
            yield f"transforms[{index}] ('{transform.kind}') {transform.acts}, in a dry run as well"


def of_script(dry_run: DryRun, limit: TimeLimit) -> DryRunEmitted | DryRunFailed:
    """Return what a script would do with messages.

    Raises:
        MalformedBody, WrongBody: the request is wrong in itself, or the script cannot be read.
        TookTooLong: reading it has taken all the time.
    """
    asked, site = read_script(dry_run.body)
    _in_time(limit)
    state = PipelineState(bucket=NAME)
    run = ChainDryRun([asked.script], dry_run.surroundings, limit, state=state, seeds=asked.state)
    run.perform([(0.0, [*asked.messages])], started_at=dry_run.started_at)
    for _, fault in run.refusals:
        if fault.code != NOT_COMPILED:
            raise unread([site.diagnose(fault)])
        hint = "" if fault.suggestion is None else f" ({fault.suggestion})"
        line, column = (fault.spot.line, fault.spot.column) if fault.spot else (None, None)
        return DryRunFailed("compile", fault.message + hint, line, column)
    if run.failure is not None:
        return _script_failed(run.failure, asked.source.name)
    excerpt, stage = Excerpt(), run.stages[0]
    heading = f"{asked.source.name}: "  # with which the log would tell whose they are
    return DryRunEmitted(
        excerpt.batches(stage),
        sorted({text.removeprefix(heading) for text in run.warnings(stage)}),
        excerpt.entries(state, run.remembered),
        excerpt.notes,
    )


def _script_failed(failure: Failure, name: str) -> DryRunFailed:
    message, (line, column) = failure.message, (None, None)
    if isinstance(failure.cause, ScriptFailed):
        message, (line, column) = failure.cause.message, failure.cause.position
        if failure.cause.script != name:  # it was in a module
            message = f"{failure.cause.script}: {message}"
    return DryRunFailed("compile" if failure.phase == "build" else "runtime", message, line, column)


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path="/api/scripts/dry-run",
        operation="dryRunScript",
        tag="pipelines",
        access=Access.ADMIN,
        summary="Show what a script would emit. Nothing that runs is touched.",
        body=DryRunRequest,
        example={
            "source": {"type": "inline", "code": "msg.hot = msg.celsius > 80;\nemit(msg);\n"},
            "messages": _READINGS,
        },
        responses={
            200: Answer("What it emitted, or why it does not compile or run.", DryRunResponse),
            **BODY,
            **refusals(
                _400="The body is not JSON or not such a request, or its script cannot be read.",
                _503="Too many dry runs wait for their turn; try again later.",
            ),
        },
        respond=dry_run_script,
    ),
    Endpoint(
        method="POST",
        path="/api/pipelines/dry-run",
        operation="dryRunPipeline",
        tag="pipelines",
        access=Access.ADMIN,
        summary="Show what every transform of a chain would hand on. Nothing that runs is touched.",
        body=PipelineDryRunRequest,
        example={
            "messages": _READINGS,
            "transforms": [
                {
                    "type": "filter",
                    "Numeric": {"field": "celsius", "operator": "greater_than", "value": 80},
                },
                {
                    "type": "reducer",
                    "group_by": ["machine"],
                    "aggregations": [{"function": "max", "field": "celsius", "as": "peak"}],
                },
            ],
        },
        responses={
            200: Answer(
                "What each stage handed on, or which of them failed and why.",
                PipelineDryRunResponse,
            ),
            **BODY,
            **refusals(
                _400="The body is not JSON or not such a request: an unknown kind of transform.",
                _503="Too many dry runs wait for their turn; try again later.",
            ),
        },
        respond=dry_run_pipeline,
    ),
)
