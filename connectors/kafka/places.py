"""Which partition a record goes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Places:
    """The partitions of a topic, as the brokers tell of them from time to time."""

    def __init__(self, cluster: Any, topic: str) -> None:
        """Take what a client of the driver knows, and is told from now on."""
        from aiokafka.partitioner import DefaultPartitioner

        self._topic = topic
        self._place: Callable[..., int] = DefaultPartitioner()
        self._everyone: Sequence[int] = ()
        self._available: Sequence[int] = ()
        self._learn(cluster)
        cluster.add_listener(self._learn)

    def _learn(self, cluster: Any) -> None:
        self._everyone = sorted(cluster.partitions_for_topic(self._topic) or ())
        self._available = sorted(cluster.available_partitions_for_topic(self._topic) or ())

    def __bool__(self) -> bool:
        """Whether there is any: a topic may be deleted."""
        return bool(self._everyone)

    def of(self, key: bytes) -> int:
        """Return where a key belongs: as with every client, whoever leads that."""
        return self._place(key, self._everyone, self._everyone)

    def any(self) -> int:
        """Return a partition that somebody leads, if one is."""
        if len(self._everyone) == 1:
            return self._everyone[0]
        return self._place(None, self._everyone, self._available)
