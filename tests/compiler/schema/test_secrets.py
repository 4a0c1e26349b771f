"""Secrets: `${NAME}` references, and who answers them."""

import copy
import json
from dataclasses import dataclass
from pickle import dumps, loads

import pytest

from headrace.compiler.errors import UnresolvedSecret
from headrace.compiler.schema.secrets import Secret, Secrets

FILED = Secrets({"A": "filed", "B.c-1_x": "b", "N": "${A}", "EMPTY": ""}, {"A": "environment"})


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${A}", "environment"),
        ("x${A}y${B.c-1_x}z", "xenvironmentybz"),
        ("${EMPTY}", ""),
        ("$A {A} $ {A}", "$A {A} $ {A}"),
    ],
)
def test_references_are_replaced_and_the_text_around_them_is_kept(template, value):
    assert FILED.resolve(Secret(template)) == value


def test_the_environment_wins_over_the_file():
    assert Secrets({"A": "filed"}, {"A": ""}).resolve(Secret("${A}")) == ""


def test_what_is_resolved_is_not_looked_at_again():
    assert FILED.resolve(Secret("${N}")) == "${A}"


def test_the_environment_of_the_process_is_asked_by_default(monkeypatch):
    monkeypatch.setenv("HEADRACE_TEST_WORD", "open")

    assert Secrets().resolve(Secret("${HEADRACE_TEST_WORD}")) == "open"


def test_a_reference_that_nothing_answers_is_refused_with_where_it_was_looked_for():
    with pytest.raises(UnresolvedSecret) as caught:
        FILED.resolve(Secret("nats://${A}:${PASSWORD}@bus"))

    fault = caught.value.fault
    assert (fault.code, fault.message, fault.found, fault.expected) == (
        "unresolved-secret",
        "nothing resolves '${PASSWORD}': looked in the environment and the secrets file",
        "${PASSWORD}",
        "an environment variable PASSWORD or an entry in the --secrets file",
    )
    assert str(caught.value) == fault.message


def test_every_reference_that_nothing_answers_is_told_once():
    faults = Secrets({}, {}).faults(Secret("${A}${B}${A}"))

    assert [fault.message for fault in faults] == [
        "nothing resolves '${A}': looked in the environment and the secrets file",
        "nothing resolves '${B}': looked in the environment and the secrets file",
    ]


def test_what_is_written_out_beside_a_reference_is_repeated_by_no_fault():
    faults = [*Secrets({}, {}).faults(Secret("written-out${A}${"))]

    assert len(faults) == 2
    assert "written-out" not in str(faults)


@pytest.mark.parametrize("template", ["${", "a${b", "${}", "${a b}", "${ä}", "${A}${", "${${A}}"])
def test_a_reference_that_is_none_is_refused(template):
    with pytest.raises(UnresolvedSecret) as caught:
        FILED.resolve(Secret(template))

    assert Secret(template).is_broken
    assert str(caught.value) == "a '${' here starts no reference"


def test_a_secret_shows_its_template_wherever_it_is_written():
    secret = Secret("${A}")

    assert (str(secret), f"{secret}", repr(secret), secret.dump()) == (
        "${A}",
        "${A}",
        "Secret('${A}')",
        "${A}",
    )
    assert json.dumps(secret, default=str) == '"${A}"'
    assert "%s %r" % (secret, secret) == "${A} Secret('${A}')"  # noqa: UP031  # as logging does
    assert str(ValueError("no", secret)) == "('no', Secret('${A}'))"


@dataclass(frozen=True)
class Door:
    """What a component is: a frozen dataclass."""

    key: Secret


def test_what_holds_a_secret_shows_its_template_as_well():
    door = Door(Secret("${A}"))
    FILED.resolve(door.key)

    assert repr(door) == "Door(key=Secret('${A}'))"
    assert repr({"doors": [door]}) == "{'doors': [Door(key=Secret('${A}'))]}"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda s: loads(dumps(s))])
def test_a_copy_of_a_secret_is_its_template(copied):
    secret = Secret("${A}")
    FILED.resolve(secret)

    assert copied(secret) == secret
    assert b"environment" not in dumps(copied(secret))


def test_who_answers_shows_no_value():
    assert "filed" not in repr(FILED)
    assert "environment" not in repr(FILED)


def test_what_was_resolved_is_hidden_and_what_was_not_is_unknown():
    secrets = Secrets({"USED": "s3same-open", "UNUSED": "s3same-shut"}, {})
    secrets.resolve(Secret("${USED}"))

    assert secrets.redact("s3same-open s3same-shut") == "${USED} s3same-shut"


def test_secrets_are_the_same_when_their_templates_are():
    assert Secret("${A}") == Secret("${A}") != Secret("${B}")
    assert Secret("${A}") != "${A}"
    assert {Secret("${A}"), Secret("${A}")} == {Secret("${A}")}


@pytest.mark.parametrize(
    "template",
    [
        "$TOKEN",
        "$_TOKEN_2",
        "$A",
        "Bearer $TOKEN",
        "user:$PASSWORD@host",
        "nats://user:$NATS_PASSWORD@host:4222",
        "${USER}:$PASSWORD",
        "$BROKER_A:9092,$BROKER_B:9092",
    ],
)
def test_a_variable_without_braces_looks_like_a_reference(template):
    assert Secret(template).lacks_braces
    assert FILED.resolve(Secret(template.replace("${USER}", ""))) == template.replace("${USER}", "")


@pytest.mark.parametrize(
    "template",
    [
        "",
        "${TOKEN}",
        "Bearer ${TOKEN}",
        "$",
        "$_",
        "$1",
        "$token",
        "$ConnectionString",  # what Azure's Event Hubs call everybody who signs in
        "$argon2id$v=19$m=65536,t=3,p=1$QUJDREVGRw$QUJDREVGRw",
        "$2B$12$ABCDEFGHIJKLMNOPQRSTUV",
        "Pa$$WORD",
        "Pa$WORD",
        "x9!$QT#w",
        "$$TOKEN",
    ],
)
def test_a_dollar_sign_alone_makes_no_variable(template):
    assert not Secret(template).lacks_braces
