"""MQTT 3.1.1: the connection both sides share, the input and the output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from headrace.compiler.component.bisection import Bisection
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.durableinput import DurableInput, durably
from headrace.compiler.component.inputbuffers import Holder
from headrace.compiler.component.payloadinput import PayloadInput
from headrace.compiler.component.promises import (
    BYTES,
    NOTHING_LOST,
    TAKEN_IN,
    InputPromises,
    MemoryBound,
    OutputPromises,
    Waiting,
)
from headrace.compiler.edges import AwaitingSink, Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import (
    Boolean,
    Choice,
    ConnectionName,
    Integer,
    Name,
    SecretText,
    refused,
)
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.text.diagnostics import Codes, Fault, Severity, shown
from headrace.connectors.mqtt.connection import LIMITS, QOS, BrokerAccess, Limits
from headrace.connectors.mqtt.mqttfailures import FAILURES
from headrace.connectors.mqtt.packets import PACKET_IDS
from headrace.connectors.mqtt.sink import MqttSink
from headrace.connectors.mqtt.source import IN_FLIGHT, REMEDIES, MqttSample, MqttSource
from headrace.connectors.network.messageoutput import MessageOutput
from headrace.connectors.network.refusal import half_credential
from headrace.connectors.network.tls import TlsConnection

CODES: Codes = {
    "starves-broker": "A broker stops sending, because what it sent is held and not acknowledged.",
}

OTHER_QOS = {word: str(number) for number, word in enumerate(QOS)}
"""What the qualities of service are called elsewhere, by our word: their numbers."""

LONGEST = 60_000
"""Bytes of a topic. MQTT has room for 65,535, in which the client id, made of it and more, has to fit."""

_NO_CHARACTERS = "".join(
    chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
_FORBIDDEN = re.compile(rf"[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef{_NO_CHARACTERS}]")
"""Control characters and non-characters: a broker may hang up on them, and Mosquitto does.

Source: MQTT 3.1.1, section 1.5.3.
"""

INNOCENT = {ord("+"): "*", ord("#"): "**"}
"""What stands for wildcards in a client id: where its ACL has patterns, Mosquitto gives nothing, and says
nothing, to a client that has one in its id."""


class MqttTopicName(Name):
    """The name of a topic: what messages are published to."""

    expects = "a topic, such as plant/press/3, without + and #"

    def read(self, value: Any) -> str:
        """Take a name that can be published to."""
        topic: str = super().read(value)
        if why := self.objection(topic):
            raise refused(
                "not-a-subject",
                f"{shown(topic)} {why}",
                found=topic,
                expected=self.expects,
                hint=self.instead(topic),
            )
        return topic

    def objection(self, topic: str) -> str | None:
        """Return what is wrong with a topic, behind its name."""
        if len(topic.encode()) > LONGEST:
            return f"is too long: at most {LONGEST:,} bytes"
        if _FORBIDDEN.search(topic):
            return "holds a character that no topic may have"
        return self.misuse(topic)

    def misuse(self, topic: str) -> str | None:
        """Return what is wrong with its wildcards: it may have none."""
        if "+" in topic or "#" in topic:
            return "is a filter, and a message is published to one topic"
        return None


class TopicFilter(MqttTopicName):
    """A topic, or a pattern of topics; a shared one begins with ``$share/<group>/``."""

    expects = "a topic or a filter: + for one level, # at the end for all that follow"

    def misuse(self, topic: str) -> str | None:
        """Return which wildcards are not a level of their own, or that a share has no group."""
        levels = topic.split("/")
        if levels[0] == "$share":
            group, levels = [*levels, ""][1], levels[2:]
            if not group or set("+#") & set(group) or levels in ([], [""]):
                return "is not $share/<group>/<filter>"
        if "#" in "/".join(levels[:-1]) or ("#" in levels[-1] and levels[-1] != "#"):
            return "has a # that is not the last level"
        if any("+" in level and level != "+" for level in levels):
            return "has a + that is not a level of its own"
        return None


class MqttConnection(TlsConnection, kind="mqtt", listed=7):
    """An MQTT broker, spoken to in MQTT 3.1.1 over TCP or TLS."""

    drivers = ("headrace.connectors.mqtt.connection",)

    host: str = option(
        Name(),
        "Name or address of the broker.",
        elsewhere="address broker hostname server url urls",
    )
    port: int = option(Integer(max=65_535), "Its port; for TLS that is usually 8883.", default=1883)
    username: Secret | None = option(
        SecretText(), "User name; goes with a password.", default=None, elsewhere="login user"
    )
    password: Secret | None = option(
        SecretText(), "Password of the user.", default=None, elsewhere="pass"
    )

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Tell of half a credential."""
        yield from super().examine(context)
        yield from half_credential(self)

    def access(self, ctx: Context) -> BrokerAccess:
        """Return how to get in, with the secrets resolved.

        Raises:
            BuildRefused: a secret does not resolve, a file is unusable, or half a credential is given.
        """
        for fault in half_credential(self, at="connection"):
            raise BuildRefused(fault)
        return BrokerAccess(
            self.host,
            self.port,
            username=None if self.username is None else ctx.resolve(self.username),
            password=None if self.password is None else ctx.resolve(self.password),
            tls=self.tls_context(ctx) if self.tls else None,
            clock=ctx.clock,
        )

    async def reach(self, ctx: Context) -> None:
        """Connect under a client id that nobody else has, and hang up."""
        from headrace.connectors.mqtt.connection import Client

        client = Client(self.access(ctx), f"headrace-{ctx.pipeline}")
        try:
            await client.open()
        finally:
            await client.close()


def _identified(ctx: Context, access: BrokerAccess, topic: str, suffix: str = "") -> str:
    """Return the client id, which is ours alone: a broker cuts off whoever had it before."""
    pipeline = _FORBIDDEN.sub("_", ctx.pipeline)
    identifier = f"headrace-{pipeline}-{topic}{suffix}".translate(INNOCENT)
    ctx.claim(f"the client id '{identifier}' at {access.where}")
    return identifier


_BOUNDS = (MemoryBound(LIMITS.most_waiting, "messages"), MemoryBound(LIMITS.most_bytes, BYTES))
_MORE = ", and as many on their way in"
WAITING = Waiting(
    row="input",
    when=" with QoS 1 or 2",
    bounds=_BOUNDS,
    joined="or",
    more=_MORE,
    beyond="it waits at the broker",
)
WAITING_QOS_0 = Waiting(
    row="qos_0",
    when=" with QoS 0",
    bounds=_BOUNDS,
    joined="or",
    more=_MORE,
    beyond="the broker queues it or drops it, as it is configured",
)
ON_DELIVERY = InputPromises(
    row="on_delivery",
    when=" with QoS 1 or 2, `on_delivery`",
    away="nothing, as far as the broker's queue for it reaches",
    kill=NOTHING_LOST,
    twice="what was not acknowledged yet, with QoS 2 as well",
    waiting=WAITING,
    is_acknowledged=True,
)
ON_RECEIPT = InputPromises(
    row="on_receipt",
    when=" with QoS 1 or 2, `on_receipt`",
    away="what is published meanwhile",
    kill=TAKEN_IN,
    twice="nothing",
    waiting=WAITING,
    is_acknowledged=True,
)
DURABLE_INPUT = durably(ON_DELIVERY, when=" with QoS 1 or 2, `durable`", told=True)
QOS_0 = InputPromises(
    row="qos_0",
    when=" with QoS 0",
    away="what is published meanwhile",
    kill=TAKEN_IN,
    twice="nothing",
    waiting=WAITING_QOS_0,
)

OUTPUT = OutputPromises(
    row="output",
    when=" with QoS 1 or 2",
    written="the broker has confirmed every message",
    away=f"waits and connects again for up to {LIMITS.write_seconds:g} s; then the batch is lost and"
    " counted",
    twice="what the broker had and could not confirm",
)
OUTPUT_QOS_0 = OutputPromises(
    row="output_qos_0",
    when=" with QoS 0",
    written="the connection has taken it",
    away="batches are lost and counted; what was on its way when the connection broke is lost as well",
    twice="nothing",
)

TOLD_ALONE = Bisection(
    "index",
    "with QoS 1 and 2 what was on its way when the connection broke is published again one message at a"
    " time: one on which the broker hangs up three times in a row, and once more after another one was"
    " confirmed, is at fault if one more is confirmed then",
)


class MqttInput(DurableInput, PayloadInput, kind="mqtt", listed=6):
    """Subscribe to an MQTT topic, or to all topics that a filter matches.

    With ``ack: on_receipt`` the session is clean: what is published while the connection is down
    never comes. With ``ack: on_delivery`` or `durable`, which need a `qos` of at least
    ``at_least_once``, the broker keeps the session: what is not acknowledged comes again after a lost
    connection, a restart or a crash, and what is published meanwhile waits there. Deleting the pipeline
    ends the session.

    A broker lets a client hold only so many messages unacknowledged, `in_flight`. With ``on_delivery`` a
    buffer that holds messages for ten seconds may get no more than those in that time. One that has a
    size alone, and would wait for ever, hands on what it holds when nothing has come for a second.

    The client id is ``headrace-<pipeline>-<topic>``, with ``*`` for + and ``**`` for #.
    """

    acknowledges = True
    promises: ClassVar = (ON_DELIVERY, DURABLE_INPUT, ON_RECEIPT, QOS_0)
    attaches: ClassVar = {
        "connection": "Connection it was read from.",
        "topic": "Topic it was published to.",
        "qos": "Quality of service it came with: " + ", ".join(QOS) + ".",
        "retain": "Whether the broker had kept it and sent it because we subscribed.",
    }
    usual: ClassVar = {"retain": False}

    connection: str = option(ConnectionName("mqtt"), "Connection to read from.")
    topic: str = option(
        TopicFilter(),
        "Topic, or filter with + and #; ``$share/<group>/<filter>`` shares it.",
        elsewhere="subscribe subscription topics",
    )
    max_batch: int = option(
        Integer(),
        "Most messages of a batch; only what has arrived is put together.",
        default=1,
        elsewhere="batch_size",
    )
    qos: str = option(
        Choice(*QOS, elsewhere=OTHER_QOS),
        "Quality of service to subscribe with.",
        default="at_most_once",
    )
    in_flight: int = option(
        Integer(min=1, max=PACKET_IDS),
        "Messages that the broker lets a client have unacknowledged (Mosquitto: `max_inflight_messages`)."
        " This tells us, and not the broker.",
        default=IN_FLIGHT,
        additive=True,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse to acknowledge what the broker has forgotten."""
        yield from super().rules()
        if self.keeps_session and self.qos == "at_most_once":
            later = "when it is on the disk" if self.is_durable else "on_delivery"
            yield Fault(
                "conflict",
                "with 'qos' at_most_once the broker forgets a message when it has sent it: there is"
                f" nothing to acknowledge {later}",
                found='"at_most_once"',
                expected="at_least_once or exactly_once",
                path=("qos",),
            )

    def starved_by(self, holder: Holder) -> Fault | None:
        """Tell of what holds more than the broker sends without an acknowledgement.

        Whether more than the usual number is enough for a time depends on what is published, so whoever
        has said that there is more is believed; a number that is waited for has to fit in any case.
        """
        if fault := super().starved_by(holder):
            return fault
        is_told = self.in_flight > IN_FLIGHT and not holder.is_by_size_alone
        is_enough = holder.most is not None and holder.most <= self.in_flight
        if self.ack != "on_delivery" or is_told or is_enough:
            return None
        return Fault(
            "starves-broker",
            f"the broker sends {self.in_flight} messages ('in_flight') and no more until some are"
            f" acknowledged, and {holder}",
            found='"on_delivery"',
            suggestion=REMEDIES,
            path=("ack",),
            severity=Severity.WARNING,
        )

    def claims(self) -> Iterator[str]:
        """Two of one client id would cut each other off."""
        yield f"the topic '{self.topic}' of '{self.connection}'"

    def promised(self) -> InputPromises:
        """Return what QoS and the way of acknowledging come to."""
        if self.qos == "at_most_once":
            return QOS_0
        if self.is_durable:
            return DURABLE_INPUT
        return ON_DELIVERY if self.keeps_session else ON_RECEIPT

    @property
    def keeps_session(self) -> bool:
        """Whether the broker keeps the session: some of what it sent may be unacknowledged at an end."""
        return self.is_durable or self.ack == "on_delivery"

    def is_kept(self) -> bool:
        """Return whether the broker keeps the session."""
        return self.keeps_session

    def kept_as(self) -> str:
        """Return the connection and the topic."""
        return f"{self.kind} {self.connection} {self.topic}"

    def source(self, ctx: Context, limits: Limits = LIMITS) -> Source:
        """Resolve the credential and claim the client id. Connects when it is read."""
        access = ctx.connection(MqttConnection, self.connection).access(ctx)
        return MqttSource(self, access, _identified(ctx, access, self.topic), ctx, limits)

    def sample_source(self, ctx: Context) -> tuple[Source, Sequence[str]]:
        """Build what subscribes as a client of its own, and shares with nobody."""
        topic = self.topic.split("/", 2)[2] if self.topic.startswith("$share/") else self.topic
        plain = replace(self, topic=topic, ack="on_receipt", durable=None)
        access = ctx.connection(MqttConnection, self.connection).access(ctx)
        identifier = _identified(ctx, access, plain.topic)
        notes = [f"read with a client id of its own, '{identifier}', and a clean session"]
        if self.keeps_session:
            notes.append("what waits in the pipeline's session is not shown, and stays there")
        if plain.topic != self.topic:
            notes.append(
                f"subscribed to '{plain.topic}' alone: a member of the group would take its messages"
                " from the others"
            )
        return MqttSample(plain, access, identifier, ctx), notes


class MqttOutput(MessageOutput, kind="mqtt", listed=8):
    """Publish each message to an MQTT topic.

    With QoS 1 and 2 a batch is written when the broker has confirmed every message, up to 50 being
    on their way; when the connection is lost, those that are not confirmed are published again, for
    up to 30 seconds, so some may come twice. With QoS 0 nobody knows what arrives.

    With `retry`, `queue` or the pipeline's `dead_letters` those are published again one at a time, and one
    on which the broker hangs up each time, though it takes others, is found to be at fault.

    The client id is ``headrace-<pipeline>-<topic>-out``.
    """

    promises: ClassVar = (OUTPUT, OUTPUT_QOS_0)
    failure_classes: ClassVar = FAILURES
    bisection: ClassVar = TOLD_ALONE

    connection: str = option(ConnectionName("mqtt"), "Connection to publish to.")
    topic: str = option(MqttTopicName(fixed=Fixed()), "Topic to publish to.", elsewhere="topics")
    qos: str = option(
        Choice(*QOS, elsewhere=OTHER_QOS), "Quality of service.", default="at_most_once"
    )
    retain: bool = option(
        Boolean(),
        "Whether the broker keeps the last message for who subscribes later.",
        default=False,
        elsewhere="retained",
    )

    def claims(self) -> Iterator[str]:
        """Two of one client id would cut each other off."""
        yield f"the topic '{self.topic}' of '{self.connection}'"

    def promised(self) -> OutputPromises:
        """Return what QoS comes to."""
        return OUTPUT_QOS_0 if self.qos == "at_most_once" else OUTPUT

    def outlasts_seconds(self) -> float:
        """Return what a batch may wait to be published again; with QoS 0 nothing is."""
        return 0.0 if self.qos == "at_most_once" else LIMITS.write_seconds

    def kept_as(self) -> str:
        """Return the connection and the topic."""
        return f"{self.kind} {self.connection} {self.topic}"

    def open(self, ctx: Context, limits: Limits = LIMITS) -> AwaitingSink:
        """Resolve the credential and claim the client id. Connects when it is started."""
        access = ctx.connection(MqttConnection, self.connection).access(ctx)
        return MqttSink(self, access, _identified(ctx, access, self.topic, "-out"), ctx, limits)
