"""Hostile scripts: each is stopped within a bounded time, and the process lives on.

The scripts are in ``attacks/``. ``//// family`` begins a family, and a line like

    // a comparator that lies | time_limit, RunError | uncounted | msg = [1]

begins an attack: its name, what may stop it (a limit, the class of another error, ``ok`` for a script
that ends by itself), and what it needs: ``uncounted`` switches the count of operations off, which would
stop most attacks on time and memory early; ``heard`` lets somebody listen to print and debug.
"""

import json
from pathlib import Path

import pytest

SIZES = ("max_string", "max_array", "max_map", "max_memory", "max_nesting")
LIMITS = (*SIZES, "max_operations", "time_limit", "max_calls", "max_emitted", "max_emitted_bytes")
GROUPS = {"a size": (*SIZES, "time_limit"), "anything": (*LIMITS, "RunError", "ok")}
DEEP = {"recursion", "values nested another way", "values that hold themselves"}
UNCOUNTED = {"max_operations": 10**12, "time_limit": 0.3}
SOON = {**UNCOUNTED, "time_limit": 0.05}
"""In the short tests, time stops what only time stops sooner; the long ones let it go on."""


def read(path):
    """All attacks of a file: family, name, code, stops, what it needs."""
    family = None
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        head, _, code = block.strip().partition("\n")
        if head.startswith("//// "):
            family = head[5:]
        elif head:
            name, stops, *needs = head.removeprefix("// ").split(" | ")
            stops = [one for stop in stops.split(", ") for one in GROUPS.get(stop, (stop,))]
            asked = question(needs, stops)
            soon = question(needs, stops, SOON)
            yield pytest.param(family, code, stops, soon, id=f"{family}: {name}")
            if soon != asked:
                longer = f"{family}: {name}, for longer"
                yield pytest.param(family, code, stops, asked, id=longer, marks=pytest.mark.long)


def question(needs, stops, uncounted=UNCOUNTED):
    options = dict(uncounted if "uncounted" in needs else {})
    if "time_limit" not in stops:
        options.pop("time_limit", None)
    asked = {"heard": "heard" in needs, "options": options}
    for need in needs:
        if need.startswith("msg = "):
            asked["value"] = json.loads(need.removeprefix("msg = "))
    return asked


ATTACKS = [
    attack
    for path in sorted((Path(__file__).parent / "attacks").glob("*.rhai"))
    for attack in read(path)
]


def test_the_files_are_read_whole():
    assert len(ATTACKS) > 200
    assert all(code and stops for _, code, stops, _ in (attack.values for attack in ATTACKS))


@pytest.mark.parametrize(("family", "code", "stops", "asked"), ATTACKS)
def test_an_attack_is_stopped_and_the_process_lives_on(withstand, family, code, stops, asked):
    withstand(code, stops, **asked)
    if family in DEEP:
        withstand(code, stops, **asked, small_stack=True)
