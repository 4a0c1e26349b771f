"""What a dry run is asked: the two request bodies, read and told all that is wrong with them.

What is wrong with the request itself (it is no JSON, a key is unknown, a number is a string) refuses
it. What its author did wrong with a transform of the right shape is what a dry run is there to tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal

from headrace.authoring.dryrun.run import MOST_MESSAGES
from headrace.authoring.playing.playedenvironment import Surroundings
from headrace.compiler.buckets import Values
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.drafts import DraftComponent, is_refused, loaded, part_of
from headrace.compiler.component.families import Transform
from headrace.compiler.component.states import PipelineState, undeclared
from headrace.compiler.config.connectionsfile import misnamed
from headrace.compiler.delivery import JsonValue
from headrace.compiler.jsontext import decode
from headrace.compiler.schema.fields import AnyJson, Boolean, Number, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import (
    AnyObject,
    ComponentOf,
    ListOf,
    ObjectOf,
    RecordOf,
    WordOr,
)
from headrace.compiler.text.diagnostics import Diagnostic, Fault, in_file_order
from headrace.compiler.text.documents import Site
from headrace.operators.script import Script
from headrace.web.bodies import R, Received, WrongBody, document_of

MOST_TRANSFORMS = 100
"""Transforms of one dry run."""
MOST_SECONDS = 10**9
"""How far time may be moved: thirty years."""

LIVE: Literal["live"] = "live"
"""The word for a copy of what a bucket of the server holds."""

_MESSAGES = ListOf(AnyJson(), noun="message")
_IN_A_MESSAGE = re.compile(r"(?:given\[\d+\]\.)?messages\[")
_ONE = "the bucket that 'state' names: a dry run has no other"
SHAPE = {"wrong-type", "missing-key", "unknown-key", "unknown-kind", "not-a-choice"}
"""Codes of what is wrong with the shape of a component, and not with what it would do."""


class BucketEntries(ObjectOf):
    """What a bucket holds: values by name under each key, of which one may be empty."""

    names = Text()

    def __init__(self) -> None:
        super().__init__(AnyObject(), noun="entry", null_is_absent=True)
        self.expects = "an object that has an object of values under each key"


class GivenMessages(Record):
    """Messages that go in together, and when."""

    at: float = option(
        Number(min=0, max=MOST_SECONDS), "When, in seconds from the beginning of the dry run."
    )
    messages: tuple[JsonValue, ...] = option(_MESSAGES, "What goes in, as one batch.")


class PipelineDryRunRequest(Record):
    """A chain of transforms, and what it is tried with: `messages`, or what is `given`."""

    messages: tuple[JsonValue, ...] | None = option(
        _MESSAGES, "What goes in, as one batch. The first 200 are used.", default=None
    )
    transforms: tuple[Any, ...] = option(
        ListOf(ComponentOf("transform")), "The chain; at most 100.", default=()
    )
    state: PipelineState | None = option(
        RecordOf(PipelineState),
        "As on a pipeline. The bucket is the dry run's own, whatever runs.",
        default=None,
    )
    buckets: Mapping[str, Values] | Literal["live"] | None = option(
        WordOr(LIVE, BucketEntries()),
        "What that bucket holds at the start: values by name, under each key. `live`: a copy of what the "
        "bucket of that name holds now.",
        default=None,
    )
    advance_seconds: float = option(
        Number(min=0, max=MOST_SECONDS),
        "How far time is moved on when the messages are through.",
        default=0,
        additive=True,
    )
    attribution: bool = option(
        Boolean(), "Whether to tell which message came from which.", default=False, additive=True
    )
    given_: tuple[GivenMessages, ...] | None = option(
        ListOf(RecordOf(GivenMessages), at_most=MOST_MESSAGES, noun="object"),
        "In place of `messages`: batches one after the other, each at its time. Of all messages the first "
        f"{MOST_MESSAGES} are used. The answer tells when each batch has left a stage.",
        default=None,
        additive=True,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse messages with and without a time, neither of them, and a batch before the one before."""
        if self.messages is None and self.given_ is None:
            missing = "this key is required"
            yield Fault("missing-key", missing, expected=_MESSAGES.expects, path=("messages",))
        elif self.messages is not None and self.given_ is not None:
            message = "'given' says what goes in and when: 'messages' has no place beside it"
            yield Fault(
                "conflict", message, expected="one of both", path=("messages",), on_key=True
            )
        for index, (before, after) in enumerate(pairwise(self.given_ or ()), 1):
            if after.at < before.at:
                expected = f"a number of at least {before.at:g}: batches come one after the other"
                said = f"expected {expected}, found {after.at:g}"
                yield Fault(
                    "out-of-range", said, f"{after.at:g}", expected, path=("given", index, "at")
                )

    @property
    def count(self) -> int:
        """How many messages go in, or would."""
        return sum(len(each.messages) for each in self.batches)

    @property
    def batches(self) -> Sequence[GivenMessages]:
        """What goes in."""
        if self.given_ is not None:
            return self.given_
        return [GivenMessages(at=0, messages=self.messages or ())]


def _of_script(name: str) -> Any:
    """Return an option that the `script` transform has."""
    known = Script.options()[name]
    default = {} if known.required else {"default": known.default}
    return option(known.field, known.doc, **default)


class DryRunRequest(Record):
    """A script, and what it is tried with."""

    source: Any = _of_script("source")
    messages: tuple[JsonValue, ...] = option(
        ListOf(AnyJson(), noun="message"),
        "What it is run on, as one batch; without any it is only compiled.",
        default=(),
    )
    scope: str = _of_script("scope")
    max_operations: int | None = _of_script("max_operations")
    state: Mapping[str, Values] | None = option(
        BucketEntries(),
        "What its bucket holds at the start: values by name, under each key.",
        default=None,
    )

    @property
    def script(self) -> Script:
        """The transform that it tries."""
        return Script(source=self.source, scope=self.scope, max_operations=self.max_operations)


@dataclass(frozen=True)
class Chain:
    """The chain of a request, as far as it could be read."""

    asked: PipelineDryRunRequest
    site: Site
    parts: Sequence[DraftComponent]
    objections: Sequence[tuple[int, Diagnostic]]
    """What is wrong with which transform, in their order."""
    remarks: Sequence[Diagnostic]

    @property
    def transforms(self) -> list[Transform]:
        """The transforms, if there are no objections."""
        return [part.built for part in self.parts if isinstance(part.built, Transform)]


def read_chain(body: bytes, catalogue: Catalogue, surroundings: Surroundings) -> Chain:
    """Read the request of a pipeline dry run.

    Raises:
        MalformedBody: it is not JSON.
        WrongBody: with all that is wrong with its shape.
    """
    found = _received(body, PipelineDryRunRequest)
    asked, site, wrong = found.record, found.site, [*found.wrong]
    listed = found.values.get("transforms", ())
    if len(listed) > MOST_TRANSFORMS:
        fault = Fault(
            "out-of-range",
            f"{len(listed):,} transforms are more than a dry run takes",
            expected=f"at most {MOST_TRANSFORMS}",
            path=("transforms",),
        )
        wrong, listed = [*wrong, site.diagnose(fault)], ()
    parts, said = [], list[tuple[int, Diagnostic]]()
    for index, each in enumerate(listed):
        part, wrong_with_it = part_of(
            each, site.inside("transforms", index), "transform", catalogue
        )
        parts.append(part)
        said += [(index, one) for one in wrong_with_it]
    wrong += [one for _, one in said if one.code in SHAPE]
    if asked is None or wrong:
        raise unread([*wrong, *(one for _, one in said)])
    said += _surrounded(parts, asked, surroundings)
    objections = [(index, one) for index, one in said if is_refused([one])]
    remarks = [one for _, one in said if not is_refused([one])]
    return Chain(asked, site, parts, sorted(objections, key=itemgetter(0)), remarks)


def read_script(body: bytes) -> tuple[DryRunRequest, Site]:
    """Read the request of a script dry run, and where the script is told in it.

    Raises:
        MalformedBody: it is not JSON.
        WrongBody: with all that is wrong with its shape.
    """
    found = _received(body, DryRunRequest)
    if found.record is None or found.wrong:
        raise unread(found.wrong)
    return found.record, found.site


def _received(body: bytes, record: type[R]) -> Received[R]:
    """Return what a body holds. In a message the last of several equal keys counts, as in ingest."""
    document, twice = document_of(body)
    wrong = [one for one in twice if not _IN_A_MESSAGE.match(one.path)]
    if len(wrong) < len(twice):
        decoded = decode(body)
        given = {key: decoded[key] for key in ("messages", "given") if key in decoded}
        document = replace(document, value={**document.value, **given})
    site = Site(document)
    built, values, faults = loaded(record, document.value)
    return Received(site, built, values, [*wrong, *map(site.diagnose, faults)])


def unread(wrong: Sequence[Diagnostic]) -> WrongBody:
    """Return the refusal of a request for all that is wrong with it, each told once."""
    return WrongBody([*dict.fromkeys(in_file_order(wrong))], "the dry run could not be read")


def _surrounded(
    parts: Sequence[DraftComponent], asked: PipelineDryRunRequest, surroundings: Surroundings
) -> Iterator[tuple[int, Diagnostic]]:
    """Yield what is wrong between a transform and what surrounds it: connections, state, files."""
    buckets = [] if asked.state is None else [asked.state.bucket]
    ground = CheckContext(surroundings.base, has_state=asked.state is not None)
    for index, part in enumerate(parts):
        named = [*part.settings()]
        faults = [
            *misnamed(named, surroundings.connections),
            *(replace(fault, expected=_ONE) for fault in undeclared(named, buckets)),
            *(part.built.examine(ground) if part.built is not None else ()),
        ]
        yield from ((index, part.site.diagnose(fault)) for fault in faults)
