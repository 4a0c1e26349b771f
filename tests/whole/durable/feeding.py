"""What feeds a durable input while one server after the other reads it, kind by kind: numbers that grow."""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from tests.services.opcua import Opcua
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import MQTT, NATS, REDIS
from tests.whole.brokers.kinds.kind import Kind
from tests.whole.brokers.peers import Load
from tests.whole.linking import Json

RATE = 400
"""Messages a second of a broker."""


class Feeding:
    """Something outside that an input reads. It runs for as long as a block lasts."""

    name: ClassVar[str]
    size: ClassVar[int] = 30
    """Messages that a buffer waits for in the tests: fewer where they come slowly."""
    least: ClassVar[int] = 91
    """Messages that arrive in each life: more than are held at a kill, and no round number of buffers."""
    comes_again: ClassVar[int] = 0
    """Messages that may come once more with a new connection, though they were stored."""
    is_kept_outside: ClassVar[bool] = False
    """Whether what is promised waits there until it is stored."""
    number: ClassVar[str] = "n"
    """The field of a message that tells it from the others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running = ExitStack()
        self._has_begun = False

    @property
    def connections(self) -> dict[str, Json]:
        """The connections of the input, by their names."""
        return {}

    @property
    def input(self) -> Json:
        """The input, without what makes it durable."""
        raise NotImplementedError

    def begin(self) -> None:
        """Send from now on, if it does not yet. Somebody reads it."""
        if not self._has_begun:
            self._has_begun = True
            self._begin()

    def _begin(self) -> None:
        """Send from now on."""

    def stop(self) -> Collection[Any]:
        """Send nothing more; return what has to arrive wherever it is kept outside until then."""
        return ()

    def start(self) -> None:
        """Start what is outside."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, _: TracebackType | None
    ) -> None:
        self._running.__exit__(kind, cause, _)


class FromBroker(Feeding):
    """Somebody publishes to a broker."""

    broker_kind: ClassVar[Kind]

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.broker = self.broker_kind.server(folder)

    @property
    def connections(self) -> dict[str, Json]:
        return {"broker": self.broker_kind.connection(self.broker)}

    @property
    def input(self) -> Json:
        read = self.broker_kind.input("broker", "in", max_batch=10)
        return {key: value for key, value in read.items() if key != "ack"}

    def start(self) -> None:
        self._running.enter_context(self.broker)
        self._aside = self._running.enter_context(Aside())
        self.broker_kind.create(self.broker, "in")

    def _begin(self) -> None:
        self._load = Load(self._aside, self.broker_kind, self.broker, "in", rate=RATE)

    def stop(self) -> Collection[Any]:
        return self._load.stop()


class FromNats(FromBroker):
    """A subject of NATS."""

    name = "nats"
    broker_kind = NATS


class FromRedis(FromBroker):
    """A channel of Redis."""

    name = "redis"
    broker_kind = REDIS


class FromMqtt(FromBroker):
    """A topic of an MQTT broker, with QoS 1."""

    name = "mqtt"
    broker_kind = MQTT
    comes_again = 20
    is_kept_outside = True


class FromPlant(Feeding):
    """A variable of an OPC UA server."""

    name = "opcua"
    comes_again = 1
    number = "value"
    CHANGES_SECONDS: ClassVar = 0.01
    """Between two changes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.plant = Opcua(folder)

    @property
    def connections(self) -> dict[str, Json]:
        return {"plant": {"type": "opcua", "endpoint": self.plant.url}}

    @property
    def input(self) -> Json:
        return {
            "type": "opcua",
            "connection": "plant",
            "nodes": [{"node_id": "ns=2;s=N0"}],
            "publish_interval_ms": 20,
            "queue_size": 1000,
        }

    def start(self) -> None:
        self._running.enter_context(self.plant)
        self.plant.tell("add_many(1)")

    def _begin(self) -> None:
        threading.Thread(target=self._change, daemon=True).start()

    def _change(self) -> None:
        """Have it count until it ends."""
        with suppress(OSError, ValueError):
            self.plant.tell(f"change(1, 1000000, {self.CHANGES_SECONDS})")


class FromDummy(Feeding):
    """The input makes its messages itself, one a second."""

    name = "dummy"
    size = 2
    least = 3
    number = "current_time"

    @property
    def input(self) -> Json:
        return {"type": "dummy", "duration": 1}


EVERY_FEEDING: tuple[type[Feeding], ...] = (FromNats, FromRedis, FromMqtt, FromPlant, FromDummy)
