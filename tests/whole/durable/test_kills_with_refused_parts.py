"""Killed again and again while a store refuses some parts: all is uploaded, or in dead letters."""

from __future__ import annotations

import os
import random
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.promises import promise
from tests.services.s3 import S3 as S3Server
from tests.whole.bridging.bridges import figure_of
from tests.whole.durable.customers import PIPELINE, Customers, pause, wait_until
from tests.whole.durable.lives import Lives, kill, pipeline
from tests.whole.durable.refusinggate import gate_before
from tests.whole.durable.test_kills_with_dead_letters import letters_below
from tests.whole.figures import Figure
from tests.whole.linking import kept
from tests.whole.stores.kinds.every import S3

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("KILLS", "5"))
CLIENTS = 8
PART = 200
"""Messages of a part: so many that parts leave faster than messages come. What is under way at two kills in
a row is suspected of them, and comes one at a time."""
LEAST = 2 * PART + 7
MOST_PAUSE = 0.3
LAKE = "p"


def is_refused(numbers: list[int]) -> bool:
    """Return whether a part is: about every third."""
    return any(each % 499 == 0 for each in numbers)


def has_more(store: S3Server, before: int) -> bool:
    """Return whether more messages are uploaded than were before."""
    return len(kept(store.objects / LAKE)) > before + PART


@promise("delivery.parts.refused")
def test_whatever_was_answered_is_uploaded_or_in_a_dead_letter(
    tmp_path: Path, figure: Figure
) -> None:
    with S3Server(tmp_path / "s3") as store, gate_before(store, is_refused) as gate:
        lake = {**S3.connection(store), "endpoint": gate.url}
        out = S3.output("lake", LAKE, rotate={"max_rows": PART})
        config = {**pipeline(outputs=[out]), "dead_letters": True}
        lives = Lives(tmp_path / "headrace", [config], connections={"lake": lake}, sync="process")
        customers = Customers(CLIENTS)
        for _ in range(KILLS):
            there = len(kept(store.objects / LAKE))
            with lives.life() as server, customers.posting(server):
                customers.wait_for(customers.count + LEAST)
                wait_until(partial(has_more, store, there), "some parts")
                pause(random.uniform(0, MOST_PAUSE))
                kill(server)
        with lives.life() as server:
            wait_until(
                lambda: figure_of(server, "headrace_stored_entries", pipeline=PIPELINE) < PART,
                "all parts that are full to leave",
            )
            lost = figure_of(server, "headrace_messages_lost_total", pipeline=PIPELINE)
            assert server.stop() == 0
        uploaded = Counter(kept(store.objects / LAKE))

    put_down = Counter[int]()
    for stage, numbers in letters_below(lives.folder):
        assert stage == "output"
        assert is_refused(numbers)
        put_down.update(numbers)
    confirmed = customers.confirmed
    missing = confirmed - uploaded.keys() - put_down.keys()
    figure("confirmed", len(confirmed))
    figure("in letters", f"{len(put_down)}, {put_down.total() - len(put_down)} twice")
    figure("missing", len(missing))
    assert customers.refused == []
    assert (missing, lost) == (set(), 0)
    assert {each for each in confirmed if is_refused([each])} <= put_down.keys()
    assert not [each for each in uploaded if is_refused([each])]
