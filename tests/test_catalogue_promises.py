"""What components promise: every kind states it, under names of its own, with the numbers that count."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.component.families import Component, Input, Output, Transform
from headrace.compiler.component.promises import Waiting, size
from headrace.compiler.edges import INBOX_BATCHES
from headrace.connectors.kafka import OUTLASTS_SECONDS
from headrace.connectors.mqtt.connection import LIMITS as MQTT
from headrace.connectors.nats import WAITING_BYTES, WAITING_MESSAGES
from headrace.connectors.opcua import MOST_WAITING

COMPONENTS = [each for each in catalogue() if each.family != "connection"]

every_kind = pytest.mark.parametrize(
    "component", COMPONENTS, ids=lambda component: f"{component.kind} {component.family}"
)


def named(component: type[Component]) -> list[tuple[str, str]]:
    """Return the names and the texts of all that a kind promises, what waits before inputs included."""
    rows = dict.fromkeys(component.promises)
    if issubclass(component, Input):
        rows |= dict.fromkeys(row.waiting for row in component.promises if row.waiting is not None)
    return [(name, text) for row in rows for name, _, text in row.named(component)]


@every_kind
def test_a_kind_promises_something(component: type[Component]):
    assert component.promises


@every_kind
def test_a_promise_is_a_clause(component: type[Component]):
    texts = [text for _, text in named(component)]

    assert [text for text in texts if text != text.strip() or text.endswith(".")] == []


def test_no_two_promises_have_one_name():
    names = Counter(name for component in COMPONENTS for name, _ in named(component))

    assert [name for name, count in names.items() if count > 1] == []
    assert "kafka.on_delivery.kill" in names


@every_kind
def test_what_holds_messages_says_so(component: type[Component]):
    if not issubclass(component, Transform):
        return
    [promised] = component.promises

    assert bool(promised.holds) == (component.holder is not Transform.holder)


@every_kind
def test_who_has_several_rows_says_which_counts(component: type[Component]):
    if not issubclass(component, Input | Output):
        return
    choosing = component.promised not in (Input.promised, Output.promised)

    assert choosing == (len(component.promises) > 1)


@every_kind
def test_an_option_that_says_a_bound_is_one_of_the_kind(component: type[Component]):
    for row in component.promises:
        waiting = getattr(row, "waiting", None)
        bounds = [*(waiting.bounds if isinstance(waiting, Waiting) else ())]
        bounds += [held] if (held := getattr(row, "held", None)) is not None else []
        for bound in bounds:
            assert isinstance(bound.most, int) or bound.most in component.options()


@every_kind
def test_only_who_acknowledges_promises_to(component: type[Component]):
    if not issubclass(component, Input):
        return

    assert component.acknowledges == any(row.is_acknowledged for row in component.promises)


@pytest.mark.parametrize(
    ("family", "kind", "numbers"),
    [
        ("input", "nats", [f"{WAITING_MESSAGES:,}", size(WAITING_BYTES)]),
        ("input", "opcua", [f"{MOST_WAITING:,}"]),
        ("input", "pipeline", [f"{INBOX_BATCHES}"]),
        ("output", "kafka", [f"{OUTLASTS_SECONDS:g}"]),
        ("output", "mqtt", [f"{MQTT.write_seconds:g}"]),
    ],
)
def test_a_docstring_repeats_no_other_number(family: str, kind: str, numbers: list[str]):
    said = (catalogue().family(family)[kind].__doc__ or "").split()

    assert [number for number in numbers if number not in " ".join(said)] == []


def test_the_words_of_a_bound_that_an_option_says_tell_the_option_and_its_default():
    http = catalogue().family("input")["http"]
    said = dict(named(http))

    assert said["http.input.waits"] == (
        "`capacity` posts, 1,024, and `max_queued_bytes` of their bodies, 64 MiB"
    )
