"""All kinds of brokers."""

from __future__ import annotations

from tests.whole.brokers.kinds.kafka import KafkaKind
from tests.whole.brokers.kinds.kind import Kind
from tests.whole.brokers.kinds.mqtt import MqttKind
from tests.whole.brokers.kinds.nats import NatsKind
from tests.whole.brokers.kinds.redis import RedisKind

KAFKA: Kind = KafkaKind()
MQTT: Kind = MqttKind()
NATS: Kind = NatsKind()
REDIS: Kind = RedisKind()
EVERY = (KAFKA, MQTT, NATS, REDIS)
