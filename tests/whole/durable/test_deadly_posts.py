"""A message that ends the process again and again is set aside, and all others are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.whole.durable import withpoison
from tests.whole.durable.customers import PIPELINE
from tests.whole.durable.lives import Lives, pipeline
from tests.whole.gate import Gate
from tests.whole.linking import statuses

EXIT_CODE = 7
"""With which the process ends at such a message."""
BEFORE = range(40)
"""Messages in front of it: more posts than may be on their way while the output waits."""
BEHIND = range(100, 110)
ARRAY = range(200, 210)
SET_ASIDE = re.compile(r"ERROR .*set aside: the process ended 3 times while it was under way")


@pytest.mark.parametrize(
    "deadly",
    [
        pytest.param({"poison": True}, id="a message"),
        pytest.param(
            [{"n": 900}, {"poison": True}, {"n": 901}],
            id="an array, which is set aside as a whole",
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_ends_the_process_again_and_again_is_set_aside(
    tmp_path: Path, gate: Gate, deadly: Any
) -> None:
    output = {**gate.output(PIPELINE), "retry": {}}
    config = [pipeline({"type": "poison"}, outputs=[output])]
    lives = Lives(tmp_path, config, script=Path(withpoison.__file__))
    posts = [
        *({"n": number} for number in BEFORE),
        deadly,
        *({"n": number} for number in BEHIND),
        [{"n": number} for number in ARRAY],
    ]

    with lives.life() as server:
        client = server.client()
        assert {client.post(PIPELINE, each).status for each in posts} == {202}
        gate.is_open.set()
        assert server.ended() == EXIT_CODE
    for _ in range(3):  # once more with all, once with a hundred, and once alone
        assert lives.run().returncode == EXIT_CODE

    with lives.life() as server:
        gate.taken[PIPELINE].wait_for([*BEFORE, *BEHIND, *ARRAY])
        server.err.find(SET_ASIDE)
        assert statuses(server) == {PIPELINE: "running"}
        assert server.stop() == 0
    assert gate.taken[PIPELINE].counts.keys() == {*BEFORE, *BEHIND, *ARRAY}

    taken = gate.taken[PIPELINE].counts.total()
    with lives.life() as server:
        assert server.post(PIPELINE, {"n": 1000}).status == 202
        gate.taken[PIPELINE].wait_for([1000])
        assert server.stop() == 0
        assert "ERROR" not in str(server.err)
    assert gate.taken[PIPELINE].counts.total() == taken + 1
