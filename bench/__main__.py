"""The command: ``python -m bench [SCENARIO...] [--write]``."""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench import (
    brokers,
    clocktimes,
    commands,
    console,
    durable,
    durablewaits,
    field,
    filtering,
    formats,
    ingest,
    keeping,
    largeposts,
    memory,
    offline,
    parsing,
    passes,
    queueing,
    remembering,
    scripts,
    signingin,
    skipping,
    stores,
)
from bench.measuring import BRIEF, THOROUGH, Effort
from bench.table import Row, machine, markdown
from tests.services.programs import Missing

Scenario = Callable[[Effort], list[Row]]

RESULTS = Path(__file__).with_name("results.md")
PAGE = """# Measured

Written by `make bench`. Each figure is the middle one of {pairs} ratios, in brackets the lowest and the
highest: both sides run turn and turn about in one run on one core, and what counts is CPU time; with
brokers and with an object store, which have the other core, it is the time on the clock, and a second line
tells the CPU time. The limits are written by hand. They make the same checks (`bench/limits.py`,
`bench/byhand.py`); those of posts, stores and devices make none (`bench/bareprotocol.py`,
`bench/stores_byhand.py`).

{machine}

{table}"""

SCENARIOS: dict[str, list[Scenario]] = {
    "batch1": [passes.batch1],
    "batch10": [passes.batch10],
    "batch100": [passes.batch100],
    "batch1000": [passes.batch1000],
    "filter1": [passes.filter1],
    "filter5": [passes.filter5],
    "map1": [passes.map1],
    "explode": [passes.explode],
    "skipmap": [skipping.skipmap],
    "skipscript": [skipping.skipscript],
    "combined": [parsing.combined],
    "times": [clocktimes.times],
    "remember10": [passes.remember10],
    "remember100": [passes.remember100],
    "recall10": [passes.recall10],
    "recall100": [passes.recall100],
    "pipelines10": [passes.pipelines10],
    "pipelines100": [passes.pipelines100],
    "pipelines1000": [passes.pipelines1000, memory.idle],
    "depth3": [passes.depth3],
    "watched": [passes.watched],
    "chain": [passes.chain],
    "runadd": [scripts.runadd],
    "runif3": [scripts.runif3],
    "runnested": [scripts.runnested],
    "script1": [scripts.script1],
    "script100": [scripts.script100],
    "chainscript": [scripts.chainscript],
    "ingest1": [ingest.ingest1],
    "ingest10": [ingest.ingest10],
    "ingest100": [ingest.ingest100],
    "durable1": [durable.durable1],
    "durable100": [durable.durable100],
    "remember10k": [remembering.remember10k],
    "remember1m": [remembering.remember1m],
    "load1m": [remembering.load1m],
    "durablewait": [durablewaits.durablewait],
    "durablelivez": [durablewaits.durablelivez],
    "readback": [durablewaits.readback],
    "queue1": [queueing.queue1],
    "queue100": [queueing.queue100],
    "outage100": [queueing.outage100],
    "ingest3000": [largeposts.ingest3000],
    "ingestids": [largeposts.ingestids],
    "ndjson100": [formats.ndjson100],
    "csv1000": [formats.csv1000],
    "alarms": [filtering.alarms],
    "passthrough": [filtering.passthrough],
    "ingestscript": [scripts.ingestscript],
    "livez": [ingest.livez],
    "livezscript": [scripts.livezscript],
    "overload": [memory.overload],
    "bucket1000000": [memory.bucket],
    "kafka100": [brokers.kafka100],
    "kafka1": [brokers.kafka1],
    "nats100": [brokers.nats100],
    "natsdurable100": [brokers.natsdurable100],
    "redis100": [brokers.redis100],
    "mqtt0": [brokers.mqtt0],
    "mqtt1": [brokers.mqtt1],
    "postgres100": [stores.postgres100],
    "postgres1": [stores.postgres1],
    "clickhouse1000": [stores.clickhouse1000],
    "s3parts": [stores.s3parts],
    "opcua1000": [field.opcua1000],
    "signin": [signingin.signin],
    "ingestguarded": [signingin.ingestguarded],
    "listing1000": [keeping.listing1000],
    "save1000": [keeping.save1000],
    "revert1000": [keeping.revert1000],
    "playhour": [offline.playhour],
    "coverage": [offline.coverage],
    "playsmall": [offline.playsmall],
    "watchfile": [offline.watchfile],
    "testcommand": [commands.testcommand],
    "runyear": [commands.runyear],
    "checkten": [commands.checkten],
    "serveready": [commands.serveready],
    "consoleopens": [console.consoleopens],
    "console100": [console.console100],
    "console1000": [console.console1000],
    "consolenear": [console.consolenear],
}


def main() -> None:
    """Run scenarios, print the table, and write it down if that is wanted."""
    parser = argparse.ArgumentParser("bench", description="Ratios against hand-written limits.")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--write", action="store_true", help=f"keep the table in {RESULTS.name}")
    parser.add_argument("--brief", action="store_true", help="only see that everything runs")
    given = parser.parse_intermixed_args()
    if strange := set(given.scenarios) - set(SCENARIOS):
        parser.error(f"no such scenario: {', '.join(sorted(strange))}")
    effort = BRIEF if given.brief else THOROUGH
    rows = [row for name in given.scenarios or SCENARIOS for row in told(name, effort)]
    table = markdown(rows)
    print(f"\n{table}")
    if given.write:
        RESULTS.write_text(page(table))


def told(name: str, effort: Effort) -> list[Row]:
    """Return the rows of one scenario, printing each as it is there."""
    rows = []
    for scenario in SCENARIOS[name]:
        try:
            found = apart(scenario, effort)
        except Missing as reason:
            print(name, f"not measured: {reason.msg}", sep="\t", flush=True)
            continue
        for row in found:
            print(row.scenario, row.figure, row.verdict, sep="\t", flush=True)
            rows.append(row)
    return rows


def apart(scenario: Scenario, effort: Effort) -> list[Row]:
    """Run a scenario in a process of its own, so that none finds what another left behind."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as process:
        return process.submit(scenario, effort).result()


def page(table: str) -> str:
    """Return what `results.md` says."""
    return PAGE.format(pairs=THOROUGH.pairs, machine=machine(), table=table)


if __name__ == "__main__":
    main()
