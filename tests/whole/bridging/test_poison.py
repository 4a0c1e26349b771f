"""One message that the other side cannot take, and says so each time as if it were an outage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import asyncpg
import pytest

from tests.promises import promise
from tests.server import serving
from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import (
    RATE,
    errors,
    figure_of,
    options,
    pipeline,
    wait_until_written,
)
from tests.whole.bridging.taker import Taker
from tests.whole.bridging.targets import PLACE, HttpTarget, PostgresTarget, Target
from tests.whole.brokers.kinds.every import KAFKA
from tests.whole.brokers.peers import Load
from tests.whole.figures import Figure
from tests.whole.stores.kinds.every import POSTGRES

pytestmark = pytest.mark.long

POISON = 123
TOPIC = "poisoned"
SLOW = f"""
    create table {PLACE} (n bigint not null, temp float8);
    create function look() returns trigger language plpgsql as
        $$ begin if new.n = {POISON} then perform pg_sleep(60); end if; return new; end $$;
    create trigger look before insert on {PLACE} for each row execute function look();
    alter role postgres set statement_timeout = '200ms'
"""
"""A table into which one row takes longer than a statement may."""


async def prepare(database: Postgres) -> None:
    """Make the table."""
    client = await asyncpg.connect(database.url)
    await client.execute(SLOW)
    await client.close()


@promise("delivery.retry.answered")
def test_only_the_message_is_lost_that_never_passes_while_others_do(
    tmp_path: Path, kafka: Kafka, figure: Figure
) -> None:
    KAFKA.create(kafka, TOPIC)
    folder = tmp_path / "headrace"
    with (
        Aside() as aside,
        Postgres(tmp_path / "postgres") as database,
        Taker(POISON) as by_batch,
        Taker(POISON) as by_message,
    ):
        aside.do(prepare(database))
        every: Sequence[Target] = [
            PostgresTarget(aside, POSTGRES, database),
            HttpTarget(by_batch, "batch"),
            HttpTarget(by_message, "message"),
        ]
        given = options(folder, kafka, every)
        with serving(folder, [pipeline(each, TOPIC) for each in every], *given) as server:
            load = Load(aside, KAFKA, kafka, TOPIC, rate=RATE)
            load.wait_for(10 * RATE)
            promised = load.stop()
            for each in every:
                wait_until_written(server, each.name, len(promised))
                arrived = each.arrived()
                lost = figure_of(server, "headrace_messages_lost_total", pipeline=each.name)
                tries = figure_of(server, "headrace_retries_total", pipeline=each.name)
                told = server.get(f"/api/pipelines/{each.name.replace(' ', '%20')}").value
                count = f"{len(promised)}, {lost} lost, {arrived.duplicates} twice"
                figure(each.name, f"{count}; {tries} tries")
                assert arrived.missing(promised) == [POISON]
                assert (lost, arrived.duplicates) == (1, 0)
                assert told["health"] == "ok"
                assert errors(server, each.name) == []
