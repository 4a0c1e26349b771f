"""Start every server of the tests and leave it running for playing by hand: `make services`."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.services.clickhouse import ClickHouse
from tests.services.kafka import Kafka
from tests.services.mosquitto import Mosquitto
from tests.services.nats import Nats
from tests.services.oidc import Oidc
from tests.services.opcua import NodeOpcua, Opcua
from tests.services.postgres import Postgres
from tests.services.programs import Missing
from tests.services.redis import Redis
from tests.services.s3 import S3
from tests.services.server import Service

KINDS: tuple[type[Service], ...] = (
    ClickHouse,
    Kafka,
    Mosquitto,
    Nats,
    NodeOpcua,
    Oidc,
    Opcua,
    Postgres,
    Redis,
    S3,
)


def main() -> None:
    """Print a line for each server, and end all of them when asked to."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with (
        suppress(KeyboardInterrupt),
        TemporaryDirectory(prefix="headrace-services-") as folder,
        ExitStack() as servers,
    ):
        for kind in KINDS:
            print(_entered(kind, Path(folder), servers), flush=True)
        print("Ctrl-C ends them and deletes what they hold", file=sys.stderr)
        signal.pause()


def _entered(kind: type[Service], folder: Path, servers: ExitStack) -> str:
    """Start one server; return its name, and where it is or why it is not."""
    name = kind.__name__.lower()
    try:
        return f"{name:11}{servers.enter_context(kind(folder / name)).url}"
    except Missing as reason:
        return f"{name:11}not started: {reason.msg}"


if __name__ == "__main__":
    main()
