"""Apache Kafka: the connection that both sides share, the input and the output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from headrace.compiler.component.bisection import Bisection
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.component.payloadinput import PayloadInput
from headrace.compiler.component.promises import (
    BYTES,
    IN_PIPELINE,
    NOTHING_LOST,
    InputPromises,
    MemoryBound,
    OutputPromises,
    Waiting,
)
from headrace.compiler.edges import AwaitingSink, Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import (
    Choice,
    ConnectionName,
    Identifier,
    Integer,
    MessageField,
    Name,
    SecretText,
    refused,
)
from headrace.compiler.schema.records import listed, option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import ObjectOf
from headrace.compiler.schema.templates import OUTPUTS, Fixed
from headrace.compiler.text.diagnostics import Fault, shown
from headrace.connectors.kafka.connection import LIMITS, Cluster, Limits
from headrace.connectors.kafka.kafkafailures import FAILURES
from headrace.connectors.kafka.member import COMMIT_SECONDS, MOST_RECORDS
from headrace.connectors.kafka.metadata import brokers
from headrace.connectors.kafka.sink import ACKS, KafkaSink
from headrace.connectors.kafka.source import FETCH_BYTES, KafkaSample, KafkaSource
from headrace.connectors.network.messageoutput import MessageOutput
from headrace.connectors.network.tls import TlsConnection

_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")

_BEGUN = {
    "earliest": "the position of the group does not count: 'start_at' earliest begins with the oldest"
    " record that is kept",
    "latest": "the position of the group does not count: 'start_at' latest shows only what is produced"
    " during the sample",
}
"""Where a sample begins."""

SASL = ("sasl_mechanism", "username", "password")
TOPIC = Fixed(f"{OUTPUTS}; in one topic, 'key' keeps what has one value together")

WAITING = Waiting(
    row="input",
    bounds=(
        MemoryBound(MOST_RECORDS, "records"),
        MemoryBound(
            FETCH_BYTES,
            BYTES,
            "of each partition that was fetched ahead (or one record that is larger)",
        ),
    ),
    beyond="it waits at the brokers; the input stays in its group",
)
_COMMITTED = f"during the last {COMMIT_SECONDS:g} s before a kill"
ON_DELIVERY = InputPromises(
    row="on_delivery",
    when=", `on_delivery`",
    away="nothing",
    kill=NOTHING_LOST,
    twice=f"what was finished {_COMMITTED}; what was on its way for more than"
    f" {LIMITS.revoke_seconds:g} s in a rebalance",
    waiting=WAITING,
    is_acknowledged=True,
)
ON_RECEIPT = InputPromises(
    row="on_receipt",
    when=", `on_receipt`",
    away="nothing",
    kill=IN_PIPELINE,
    twice=f"what was taken in {_COMMITTED}",
    waiting=WAITING,
    is_acknowledged=True,
)

OUTLASTS_SECONDS = LIMITS.request_seconds + 1
"""What a batch may wait for the brokers: the driver's time, and a second of ours."""
BY_ACKS = {
    "all": OutputPromises(
        row="output",
        written="all replicas in sync have confirmed every record (`acks: all`)",
        away=f"waits, in order, for up to {OUTLASTS_SECONDS:g} s; then the batch is lost and counted",
        twice="what a broker wrote and could not confirm before it died",
    ),
    "leader": OutputPromises(
        row="output_leader",
        when=", `acks: leader`",
        written="the leader of its partition has confirmed every record",
        away="",
        twice="",
    ),
    "none": OutputPromises(
        row="output_none",
        when=", `acks: none`",
        written="the driver has sent every record",
        away="",
        twice="",
    ),
}


class TopicName(Name):
    """The name of a topic.

    Source: https://kafka.apache.org/documentation/ (`kafka.common.Topic`).
    """

    expects = "a topic: at most 249 letters, digits and ._-"

    def read(self, value: Any) -> str:
        """Take a name that brokers take."""
        topic: str = super().read(value)
        if not _TOPIC.fullmatch(topic):
            message, hint = f"{shown(topic)} cannot be the name of a topic", self.instead(topic)
            raise refused("not-a-subject", message, found=topic, expected=self.expects, hint=hint)
        return topic


class KafkaConnection(TlsConnection, kind="kafka", listed=1, elsewhere="kafka_franz redpanda"):
    """The brokers of a Kafka cluster, and how to get in.

    One broker that answers is enough: it tells of the others. A broker that refuses the credential,
    the certificate, or TLS as it is configured refuses the pipeline, with its own reason.
    """

    drivers = ("aiokafka", "headrace.connectors.kafka.connection")

    brokers: Secret = option(
        SecretText(),
        "Where to begin: `host:port`, several of them parted by commas.",
        elsewhere="addresses bootstrap_servers hosts seed_brokers servers urls",
    )
    sasl_mechanism: str | None = option(
        Choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        "How user name and password are presented (SASL).",
        default=None,
        additive=True,
        elsewhere="mechanism sasl",
    )
    username: Secret | None = option(
        SecretText(),
        "User name, usually a ${NAME} reference.",
        default=None,
        additive=True,
        elsewhere="sasl_username user",
    )
    password: Secret | None = option(
        SecretText(),
        "Password, usually a ${NAME} reference.",
        default=None,
        additive=True,
        elsewhere="pass sasl_password",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse half a credential, and brokers that cannot be, as far as they can be read."""
        yield from super().rules()
        if not self.brokers.names():
            try:
                brokers(self.brokers.template, self.brokers.template)
            except BuildRefused as refused:
                yield replace(refused.fault, path=("brokers",))
        missing = [name for name in SASL if getattr(self, name) is None]
        if 0 < len(missing) < len(SASL):
            given = [name for name in SASL if name not in missing]
            need = "needs" if len(given) == 1 else "need"
            message = f"{listed(given)} {need} {listed(missing)} beside it"
            yield Fault("conflict", message, expected=f"all of {listed(SASL)}, or none")

    def cluster(
        self, ctx: Context, limits: Limits = LIMITS, *, makes_topics: bool = True
    ) -> Cluster:
        """Return the brokers as one component reaches them. They may make the topic it asks for.

        Raises:
            BuildRefused: an address is none, or a file of TLS cannot be used.
        """
        addresses = brokers(ctx.resolve(self.brokers), self.brokers.template)
        tls = self.tls_context(ctx) if self.tls else None
        layer = "PLAINTEXT" if tls is None else "SSL"
        access = {
            "client_id": f"headrace-{ctx.pipeline}",
            "security_protocol": layer,
            "ssl_context": tls,
        }
        if self.sasl_mechanism and self.username is not None and self.password is not None:
            access |= {
                "security_protocol": f"SASL_{layer}",
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": ctx.resolve(self.username),
                "sasl_plain_password": ctx.resolve(self.password),
            }

        def presented() -> dict[str, Any]:
            return access  # the repr of a function does not show the credential

        return Cluster(addresses, presented, ctx, limits, makes_topics)

    async def reach(self, ctx: Context) -> None:
        """Have one of the brokers let us in."""
        await self.cluster(ctx).sign_in()


class KafkaInput(
    PayloadInput, kind="kafka", listed=3, elsewhere="kafka_consumer kafka_franz redpanda"
):
    """Read JSON records from a topic, as a member of a consumer group.

    The group's position is kept by the brokers and survives a restart. It is fixed before the
    pipeline counts as built, so whatever is produced from then on arrives. Positions are committed
    about once a second, when partitions move to another member, and at the end; with
    `ack: on_delivery` only up to the first record of a partition that is not through yet.

    A record that is not JSON, or has no value (a tombstone), is skipped with a warning and counts as
    read. Records of transactions that were not committed are not read.
    """

    drivers = ("aiokafka",)
    acknowledges = True
    lacks: ClassVar = {
        "durable": "the topic keeps what is not read yet: 'ack: on_delivery' has a restart read it again"
    }
    promises: ClassVar = (ON_DELIVERY, ON_RECEIPT)
    attaches = {
        "connection": "Connection it was read from.",
        "topic": "Topic it was in.",
        "partition": "Its partition.",
        "offset": "Its offset in the partition.",
        "key": "Its key; null without one, or if that is not UTF-8.",
        "timestamp": "When it was produced, or appended, as the topic is configured; null if unknown.",
    }

    connection: str = option(ConnectionName("kafka"), "Connection to read from.")
    topic: str = option(TopicName(), "Topic to read.", elsewhere="subscribe topics")
    group: str = option(
        Identifier(),
        "Consumer group; the position is kept per group.",
        elsewhere="consumer_group group_id",
    )
    max_batch: int = option(
        Integer(),
        "Most messages in a batch, of those that have arrived already; 0 is read as 1.",
        default=1,
        elsewhere="batch_size max_poll_records",
    )
    start_at: str = option(
        Choice(
            "earliest",
            "latest",
            elsewhere={
                "earliest": "beginning first oldest smallest start true",
                "latest": "end false largest last newest now",
            },
        ),
        "Where to begin when the group has no position in a partition.",
        default="latest",
        elsewhere="auto_offset_reset offset start_from_oldest start_offset",
    )

    def dump(self, *, masked: bool = True) -> dict[str, Any]:
        """Return the config object, with a `start_at` of null where it was left out."""
        start_at = self.start_at if "start_at" in self.given else None
        return {**super().dump(masked=masked), "start_at": start_at}

    def promised(self) -> InputPromises:
        """Return what the way of acknowledging comes to."""
        return ON_DELIVERY if self.ack == "on_delivery" else ON_RECEIPT

    def is_kept(self) -> bool:
        """Return True: the group has its position in the topic."""
        return True

    def source(self, ctx: Context, limits: Limits = LIMITS) -> Source:
        """Build what reads the topic."""
        cluster = ctx.connection(KafkaConnection, self.connection).cluster(ctx, limits)
        return KafkaSource(self, cluster)

    def sample_source(self, ctx: Context) -> tuple[Source, Sequence[str]]:
        """Build what reads the topic under a group of its own that nobody ever joins."""
        group = f"headrace-{ctx.pipeline}"
        plain = replace(self, group=group)
        cluster = ctx.connection(KafkaConnection, self.connection).cluster(ctx, makes_topics=False)
        source = KafkaSample(plain, cluster)
        return source, [
            f"read with a throwaway consumer group, '{group}', and nothing is committed",
            _BEGUN[self.start_at],
        ]


class KafkaOutput(
    MessageOutput, kind="kafka", listed=4, elsewhere="kafka_franz kafka_producer redpanda"
):
    """Write each message as a JSON record to a topic.

    The records of a batch are sent together, with those of other batches that wait, and a batch is
    written when all of its own are confirmed. While no broker answers a batch waits for up to 30
    seconds. If it has to be given up after that, or is refused in part, the log says how many of
    its records were confirmed.

    Records with the same key go to the same partition, as with every Kafka client; without a key, all
    records of a batch go to one partition. Order within a partition is kept.
    """

    drivers = ("aiokafka",)
    promises: ClassVar = (*BY_ACKS.values(),)
    failure_classes: ClassVar = FAILURES
    bisection: ClassVar = Bisection(
        "index",
        "of a record batch all is taken or nothing: halves of it are sent, confirmed records never again",
    )

    connection: str = option(ConnectionName("kafka"), "Connection to write to.")
    topic: str = option(TopicName(fixed=TOPIC), "Topic to write to.", elsewhere="topics")
    key: str | None = option(
        MessageField(),
        "Field that holds a record's key: a string as it is, anything else as JSON text. Without the"
        " field, or with null in it, a record has no key.",
        default=None,
        additive=True,
        elsewhere="key_field message_key partition_key",
    )
    headers: dict[str, str] | None = option(
        ObjectOf(MessageField(), noun="dotted path", null_is_absent=True),
        "Headers of a record, by name: the field that holds the value, written as a key is. Without"
        " the field, or with null in it, a record does not have the header.",
        default=None,
        additive=True,
    )
    compression: str = option(
        Choice(
            "none",
            "gzip",
            "snappy",
            "lz4",
            "zstd",
            elsewhere={"none": "false no off", "gzip": "gz", "zstd": "zst zstandard"},
        ),
        "How what is sent together is compressed.",
        default="none",
        additive=True,
    )
    acks: str = option(
        Choice(*ACKS, elsewhere={"all": "-1", "leader": "1 one", "none": "0 no"}),
        "Who confirms a record: all replicas that are in sync (Kafka's `acks=all`), the leader of its"
        " partition alone (`acks=1`), or nobody (`acks=0`).",
        default="all",
        additive=True,
    )

    def field_use(self) -> FieldUse:
        """With a template its fields are read, the key and the headers."""
        use = super().field_use()
        if not use.is_known:
            return use
        keyed = [] if self.key is None else [self.key]
        return FieldUse.of(reads=[*use.reads, *keyed, *(self.headers or {}).values()])

    def promised(self) -> OutputPromises:
        """Return what whoever confirms comes to."""
        return BY_ACKS[self.acks]

    def outlasts_seconds(self) -> float:
        """Return what a batch may wait for the brokers."""
        return OUTLASTS_SECONDS

    def kept_as(self) -> str:
        """Return the connection and the topic."""
        return f"{self.kind} {self.connection} {self.topic}"

    def open(self, ctx: Context, limits: Limits = LIMITS) -> AwaitingSink:
        """Build what writes to the topic."""
        cluster = ctx.connection(KafkaConnection, self.connection).cluster(ctx, limits)
        return KafkaSink(self, cluster)
