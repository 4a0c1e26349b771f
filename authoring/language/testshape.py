"""What a test of a config may say: its keys, and what each of them holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from headrace.authoring.language.deadlettershape import DeadLetterShape
from headrace.authoring.language.durations import Duration
from headrace.authoring.language.said import SaidShape
from headrace.authoring.playing.playlength import DEFAULT_MAX_MOMENTS, MOMENTS_EACH
from headrace.compiler.schema.fields import AnyJson, Integer, Name, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import AnyObject, ListOf, ObjectOf, RecordOf


class AnyName(ObjectOf):
    """An object by names that may be whatever text."""

    names: ClassVar[Text] = Name()


class Expected(AnyName):
    """What is expected, by where it comes; and what is said, and refused."""

    words: ClassVar = {
        "failures": (
            ListOf(RecordOf(SaidShape), noun="failure"),
            "Failures, all of them: one that is not expected fails the test.",
        ),
        "warnings": (
            ListOf(RecordOf(SaidShape), noun="warning"),
            "Warnings, all of them, if any are named here; `[]`: none.",
        ),
        "dead_letters": (
            ListOf(RecordOf(DeadLetterShape), noun="dead letter"),
            "Dead letters that are there at the end, all of them, if any are named here; `[]`: none.",
        ),
        "lost": (
            AnyName(AnyJson(), noun="amount"),
            "Messages that are lost, by component: how many, or how many by reason. All of them, if any are"
            " named here; `{}`: none.",
        ),
        "refused": (
            AnyName(Integer(min=0), noun="count"),
            "Posts that were answered with 503, by pipeline.",
        ),
        "unanswered": (
            AnyName(Integer(min=0), noun="count"),
            "Posts that nobody answered, for the process was killed, by pipeline.",
        ),
    }


class Faults(AnyName):
    """What is wrong, by whom it is wrong with."""

    words: ClassVar = {
        "process": (
            AnyObject(),
            "The process is killed: at a moment, or for a span until it starts again. Each is `killed`,"
            " or `killed before commit 1` or `after` it, counted from that moment on; several in a list.",
        ),
        "store": (AnyObject(), "Spans in which the disk of the store is `full`."),
    }


class TestShape(Record):
    """What is given when, what is expected then, and what goes wrong meanwhile."""

    __test__: ClassVar[bool] = False

    given_: Mapping[str, Any] | None = option(
        AnyName(AnyJson(), noun="timeline"),
        "Timelines of what arrives: by `PIPELINE`, `PIPELINE.inputs[N]`, or `state.BUCKET` for what is "
        "written to a bucket.",
        default=None,
        elsewhere="inputs input when",
    )
    expect: Mapping[str, Any] | None = option(
        Expected(AnyJson(), noun="timeline"),
        "Timelines of what comes: by `PIPELINE` (what leaves its last transform), "
        "`PIPELINE.transforms[N]`, `PIPELINE.outputs[N]` (what is written), or `state.BUCKET` (what it "
        "holds then). Lists `failures` and `warnings` of `{at, says, times}`, and `dead_letters` of "
        "`{at, says, class, stage, messages, payload, times}`; `refused` has posts that were answered with "
        "503, and `unanswered` those that nobody answered, by pipeline; `lost` has how many messages are, "
        "by component. All of what is named is compared.",
        default=None,
        elsewhere="expected outputs output then assert",
    )
    replies: Mapping[str, Any] | None = option(
        AnyName(AnyJson(), noun="reply"),
        "What servers answer, by `PIPELINE.transforms[N]`: a status, `down`, or `$body` or `$echo` with "
        "`$status` and `$after`. A list is used up in turn.",
        default=None,
        elsewhere="mocks responses",
    )
    faults: Mapping[str, Any] | None = option(
        Faults(AnyObject(), noun="fault"),
        "What is wrong with servers, by `PIPELINE.inputs[N]`, `PIPELINE.outputs[N]` or "
        "`connections.NAME`: spans such as `2m..12m`, each `down`, `slow 2s`, `refuses`, `refuses as "
        "CLASS`, `unanswered`, or `{refuses, as, says}` of some messages. When the `process` is `killed`, "
        "and when the disk of its `store` is `full`.",
        default=None,
    )
    until: str | None = option(
        Duration(),
        "When everything is ended, as at the stop of a server. Left out: at the last moment that is "
        "written.",
        default=None,
        elsewhere="duration end",
    )
    max_moments: int = option(
        Integer(min=1, max=10**12),
        "How many moments may pass at which timers are due, beside "
        f"{MOMENTS_EACH} for each thing that is given. Above, the test fails, however far it has come.",
        default=DEFAULT_MAX_MOMENTS,
    )
    frame: str = option(Duration(above_zero=True), "How long a column of marbles is.", default="1s")
    tags: tuple[str, ...] = option(
        ListOf(Name(), noun="tag"), "Words to select tests by.", default=()
    )
    skip: str | None = option(Name(), "Why it is not run.", default=None, elsewhere="skipped")
