"""Apache Kafka: one node that is broker and controller."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.services import kafka_requests as requests
from tests.services.jars import alone
from tests.services.java import java, prepared_classes
from tests.services.server import Service, free_port

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_LOGIN = "org.apache.kafka.common.security"

# What lets one node start at once, also after it was killed, and keep little in memory.
_SMALL = (
    "broker.session.timeout.ms=1000",
    "broker.heartbeat.interval.ms=200",
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.num.partitions=1",
    "offsets.topic.replication.factor=1",
    "transaction.state.log.num.partitions=1",
    "transaction.state.log.replication.factor=1",
    "transaction.state.log.min.isr=1",
    "num.network.threads=1",
    "num.io.threads=2",
    "log.cleaner.dedupe.buffer.size=2097152",
)


class Kafka(Service):
    """A Kafka broker. Everybody may come in at its plaintext listener.

    With ``tls`` there is a listener `SSL`, with ``users`` (passwords by name) one named
    `SASL_PLAINTEXT` for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, and with both one named `SASL_SSL`.
    ``mutual`` is for `SSL` alone. A line of ``extra`` is a property: `message.max.bytes=20000000`.
    """

    ready = "Kafka Server started"

    def __init__(
        self, folder: Path, *, users: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        """Take passwords by user."""
        super().__init__(folder, **options)
        self.users = dict(users or {})
        encrypted = ["SSL"] if self.tls is not None else []
        known = ["SASL_PLAINTEXT", *(f"SASL_{name}" for name in encrypted)] if self.users else []
        others = [*encrypted, *known, "CONTROLLER"]
        self._ports = {"PLAINTEXT": self.port}
        for name in others:
            self._ports[name] = free_port(*self._ports.values())

    @property
    def bootstrap(self) -> str:
        """The address that needs neither TLS nor credentials."""
        return self.address

    def bootstrap_for(self, protocol: str) -> str:
        """Return the address of `PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`."""
        return f"{self.host}:{self._ports[protocol]}"

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic and return when clients find it."""
        requests.create_topic(self.host, self.port, name, partitions)

    def show_topic(self, name: str, user: str) -> None:
        """Let a user see a topic, and no more. Some moments may pass before the broker has heard of it."""
        requests.allow_to_describe(self.host, self.port, name, user)

    def command(self) -> Sequence[str | Path]:
        return [*self._java(), "kafka.Kafka", self._properties]

    def prepare(self) -> None:
        config = [*self._config(), *self._encryption(), *self._credentials(), *self.extra, ""]
        self._properties.write_text("\n".join(config))
        storage = ["--cluster-id", "A" * 22, "--config", str(self._properties), *self._scram()]
        command = [*self._java(), "kafka.tools.StorageTool", "format", *storage]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def answers(self) -> bool:
        return requests.answers(self.host, self.port)

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _java(self) -> list[str | Path]:
        return [*java(), f"-XX:AOTCache={_prepared()}"]

    def _config(self) -> Iterator[str]:
        everywhere = {name: f"{name}://{self.bootstrap_for(name)}" for name in self._ports}
        told = [address for name, address in everywhere.items() if name != "CONTROLLER"]
        protocols = {name: name for name in self._ports} | {"CONTROLLER": "PLAINTEXT"}
        pairs = [f"{name}:{protocol}" for name, protocol in protocols.items()]
        yield "process.roles=broker,controller"
        yield "node.id=1"
        yield f"log.dirs={self.folder / 'data'}"
        yield f"controller.quorum.voters=1@{self.bootstrap_for('CONTROLLER')}"
        yield "controller.listener.names=CONTROLLER"
        yield f"listeners={','.join(everywhere.values())}"
        yield f"advertised.listeners={','.join(told)}"
        yield f"listener.security.protocol.map={','.join(pairs)}"
        yield "inter.broker.listener.name=PLAINTEXT"
        yield from _SMALL

    def _encryption(self) -> Iterator[str]:
        if self.tls is None:
            return
        both = self.folder / "server.pem"
        both.write_bytes(
            self.tls.server_key_file.read_bytes() + self.tls.server_cert_file.read_bytes()
        )
        yield "ssl.keystore.type=PEM"
        yield f"ssl.keystore.location={both}"
        yield "ssl.truststore.type=PEM"
        yield f"ssl.truststore.location={self.tls.ca_file}"
        yield f"ssl.client.auth={'required' if self.mutual else 'none'}"

    def _credentials(self) -> Iterator[str]:
        if not self.users:
            return
        yield f"sasl.enabled.mechanisms={','.join(_MECHANISMS)}"
        users = " ".join(f'user_{user}="{password}"' for user, password in self.users.items())
        for listener in (name.lower() for name in self._ports if name.startswith("SASL_")):
            option = f"listener.name.{listener}.%s.sasl.jaas.config={_LOGIN}.%s required %s;"
            yield option % ("plain", "plain.PlainLoginModule", users)
            for scram in _MECHANISMS[1:]:
                yield option % (scram.lower(), "scram.ScramLoginModule", "")

    def _scram(self) -> Iterator[str]:
        for mechanism in _MECHANISMS[1:]:
            for user, password in self.users.items():
                yield from ("--add-scram", f"{mechanism}=[name={user},password={password}]")


class _Watched(Kafka):
    """A broker at whose end Java keeps its classes prepared, for a start in half the time."""

    patience = 300.0  # ten seconds of work where nothing else goes on

    @property
    def classes(self) -> Path:
        return self.folder / "classes.aot"

    def command(self) -> Sequence[str | Path]:
        return [*java(), f"-XX:AOTCacheOutput={self.classes}", "kafka.Kafka", self._properties]

    def _java(self) -> list[str | Path]:
        return java()


def _prepared() -> Path:
    """Return the classes that Java keeps prepared for Kafka; made now if there are none.

    The jars must be there: whoever fetches them waits for the same lock.
    """
    kept = prepared_classes()
    if not kept.exists():
        with alone():
            # Another worker may have made them meanwhile.
            if not kept.exists():
                with TemporaryDirectory(dir=kept.parent) as folder:
                    with _Watched(Path(folder)) as broker:
                        broker.stop()
                    os.replace(broker.classes, kept)
    return kept
