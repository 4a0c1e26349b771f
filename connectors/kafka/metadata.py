"""Where the brokers of a cluster are: as a connection lists them, and as one of them tells.

That one also tells who leads a topic, and who looks after a group.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.compiler.text.diagnostics import Fault, shown
from headrace.connectors.kafka.kafkafailures import FAILURES, RETRIABLE, UNKNOWN_TOPIC
from headrace.connectors.network.refusal import turned_away

Broker = tuple[str, int]
"""Host and port."""

_ADDRESS = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/@,\[\]\x00-\x1f\x7f]+)):(?P<port>\d{1,5})"
)

TOPIC_SECONDS = 1.5
"""How long a topic may take to be there that the broker makes when it is asked for."""
ASK_SECONDS = 0.1
"""How often a broker is asked for that topic."""


def brokers(text: str, template: str) -> list[Broker]:
    """Return the hosts and ports of a list.

    Raises:
        BuildRefused: one is no address. It is shown as the ``template`` of the list spells it, for
            what that resolves to may be a secret.
    """
    found = [_broker(entry.strip()) for entry in text.split(",")]
    if None in found:
        index, entries = found.index(None), template.split(",")
        if len(entries) == len(found):
            bad = entries[index].strip()
            which = f"'{bad}' in 'brokers'"
        else:
            bad = template
            which = f"part {index + 1} of '{template}'"
        message = f"{which} is no address of a broker"
        expected = "host:port, several of them parted by commas"
        raise BuildRefused(Fault("not-an-address", message, bad, expected, path=("connection",)))
    return [broker for broker in found if broker is not None]


def spelt(host: str, port: int) -> str:
    """Return an address as a list has it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _broker(entry: str) -> Broker | None:
    match = _ADDRESS.fullmatch(entry)
    if match is None or not 0 < int(match["port"]) <= 65535:
        return None
    host = match["six"] or match["host"]
    try:
        host.encode("idna")  # a part of a name is neither empty nor longer than 63
    except UnicodeError:
        return None
    return host, int(match["port"])


class NotThere(Unreachable):
    """The brokers answer, and something is not there. It may come by itself."""


class NoTopic(NotThere):
    """The brokers know no topic of that name, and make none."""

    def __init__(self, message: str) -> None:
        super().__init__(message, FAILURES.of(UNKNOWN_TOPIC))


@dataclass(frozen=True)
class Metadata:
    """Where the brokers are, and which of them leads each partition of a topic."""

    brokers: Mapping[int, Broker]
    leaders: Mapping[int, int]

    @property
    def places(self) -> Collection[Broker]:
        """The addresses of the leaders, each once."""
        return dict.fromkeys(
            self.brokers[each] for each in self.leaders.values() if each in self.brokers
        )

    @property
    def lacks(self) -> str | None:
        """What is missing altogether, after the name of whoever tells it; None: enough is there."""
        if not self.brokers:
            return "names no brokers"
        if not self.leaders:
            return "has no partition of it"
        return None if self.places else "has a leader for no partition of it"


async def metadata_of(
    connection: Any, where: str, topic: str, clock: Clock, *, makes: bool = True
) -> Metadata:
    """Ask for a topic until it is there: who asks has it made, if that is allowed.

    Unless it ``makes`` none: then a topic that is not there does not come.

    Raises:
        BuildRefused: the topic cannot be, or must not be seen.
        NoTopic: it does not come.
        NotThere: it does, and nobody leads any of it.
    """
    from aiokafka.errors import NoError, UnknownTopicOrPartitionError, for_code
    from aiokafka.protocol.metadata import MetadataRequest

    ends = clock.monotonic() + TOPIC_SECONDS - ASK_SECONDS
    while True:
        answer = await connection.send(MetadataRequest([topic], makes))
        code, leaders = _topic(answer, topic)
        error = NoError if code is None else for_code(code)
        if error is not NoError and not error.retriable:
            raise turned_away(f"{where} refuses the topic '{topic}': {error.message}")
        there = {node: (host, port) for node, host, port, *_ in answer.brokers}
        metadata = Metadata(there, leaders)
        if code is not None and error is NoError and metadata.lacks is None:
            return metadata
        if not makes and error is UnknownTopicOrPartitionError:
            raise NoTopic(f"{where} has no topic '{topic}'")
        if clock.monotonic() > ends:
            if code is None or error is not NoError:
                raise NoTopic(f"{where} has no topic '{topic}', and makes none")
            raise NotThere(f"{where}, asked for the topic '{topic}', {metadata.lacks}")
        await clock.sleep(ASK_SECONDS)


def _topic(answer: Any, topic: str) -> tuple[int | None, Mapping[int, int]]:
    """Return the error of a topic, and who leads its partitions; None when there is no word of it."""
    for code, name, *_, partitions in answer.topics:
        if name == topic:
            return code, {number: leader for _, number, leader, *_ in partitions}
    return None, {}


async def coordinator(connection: Any, group: str) -> Broker:
    """Ask where the broker is that looks after a group.

    Raises:
        NotThere: there is none.
    """
    from aiokafka.errors import NoError, for_code
    from aiokafka.protocol.coordination import FindCoordinatorRequest

    answer = await connection.send(FindCoordinatorRequest(group, 0))
    error = for_code(answer.error_code)
    if error is not NoError:
        what = f"no broker looks after the group '{group}': {error.message}"
        raise NotThere(what, FAILURES.of(error.message, RETRIABLE))
    return answer.host, answer.port


def advertised(broker: Broker) -> Broker:
    """Return an address that brokers tell.

    Raises:
        NotThere: it is none.
    """
    host, port = broker
    if _broker(spelt(host, port)) is None:
        raise NotThere(f"the brokers advertise {shown(host)}, {port}, which is no address")
    return broker
