"""What is told of a part that bridges outages: how long it waits, and what may be there twice."""

from __future__ import annotations

import pytest

from headrace.authoring.configfiles import ConfigFiles, load_config
from headrace.authoring.explaining.explanation import explained
from tests.authoring.explaining.configs import GOLDEN, explained_text, known

CONFIG = """
- id: p
  inputs: [{{ type: http }}]
  transforms: [{{ type: http, url: "http://127.0.0.1:9/", verb: POST, {retry} }}]
  outputs:
    - {{ type: http, url: "http://127.0.0.1:9/", {retry} }}
"""


@pytest.mark.parametrize(
    ("retry", "lasting"), [("true", "for ever"), ("{ seconds: 90 }", "for up to 90 s")]
)
def test_it_waits_in_an_outage_and_what_was_cut_off_may_be_there_twice(
    retry: str, lasting: str
) -> None:
    [told] = explained_text(CONFIG.format(retry=f"retry: {retry}"))

    _, transform, output = told.parts()
    waits = f"waits and is tried again, in order, {lasting}"
    assert f"while the server is away: {waits}" in transform.notes
    said = {each.about: (each.name, each.text) for each in output.promises}
    assert said["away"] == ("delivery.retry.waits", waits)
    assert said["twice"][1] == "what was cut off after it was sent"


@pytest.mark.parametrize(
    ("queue", "most"),
    [
        ("true", "at most 1 GiB, beyond that what comes waits, and the inputs with it"),
        (
            "{ max_bytes: 1048576, when_full: drop_oldest }",
            "at most 1 MiB, beyond that the oldest is dropped and counted",
        ),
    ],
)
def test_a_queue_says_how_much_it_keeps_and_what_happens_beyond(queue: str, most: str) -> None:
    config = f"""
- id: p
  inputs: [{{ type: http }}]
  outputs:
    - {{ type: http, url: "http://127.0.0.1:9/", queue: {queue} }}
"""
    [told] = explained_text(config)

    said = {each.about: (each.name, each.text) for each in [*told.parts()][1].promises}
    waits = f"is on the disk and is tried again, in order, for ever; {most}"
    assert said["away"] == ("delivery.queue.waits", waits)


def test_without_it_an_output_says_what_it_ever_said() -> None:
    [told] = explained_text(CONFIG.format(retry="verb: POST").replace("verb: POST, verb", "verb"))

    said = {each.about: (each.name, each.text) for each in [*told.parts()][2].promises}
    assert said["away"] == ("http.output.away", "batches are lost and counted")


REPEATING = """
- id: p
  inputs: [{{ type: http, durable: true }}]
  outputs: [{{ type: clickhouse, connection: house, table: t, deduplicate_token: true, {more} }}]
"""


@pytest.mark.parametrize("more", ["retry: true", "queue: {}", "create_table: false"])
def test_what_comes_again_after_a_restart_has_no_token_that_a_server_knows(more: str) -> None:
    connections = GOLDEN / "stores.connections.yaml"
    files = ConfigFiles(connections=connections, piped=REPEATING.format(more=more).encode())

    [told] = explained(load_config(files, known()), ())

    [said] = [each.text for each in [*told.parts()][-1].promises if each.about == "twice"]
    assert said.startswith("nothing that is tried again in one run, where the table leaves out")
    assert said.endswith(
        "what comes again after the process or the pipeline has ended is written again"
    )
