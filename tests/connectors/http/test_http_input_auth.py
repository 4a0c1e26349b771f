"""Who may post to an `http` input: its credential, and which ones it refuses."""

import pytest

from headrace.compiler.errors import BuildRefused
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.http import HttpInput
from tests.doubles import StubContext
from tests.http_sides import (
    BEARER,
    HEADER,
    admitted,
    no_header_can_carry,
    posts,
    resolves_to_nothing,
)


def test_without_auth_everybody_may_post():
    assert admitted(posts({}))


@pytest.mark.parametrize(
    ("authorization", "is_admitted"),
    [
        ("Bearer s3cret", True),
        ("bearer s3cret", True),
        ("BEARER s3cret", True),
        ("Bearer    s3cret", True),
        ("Bearer S3cret", False),
        ("Bearer s3cret ", True),
        ("\t Bearer s3cret \t", True),
        ("Bearer s3 cret", False),
        ("Bearer s3cret\xa0", False),
        ("Bearer s3cre", False),
        ("Bearer", False),
        ("Bearer ", False),
        ("Bearers3cret", False),
        ("Bearer\ts3cret", False),
        ("Basic s3cret", False),
        ("s3cret", False),
        ("", False),
        ("Bearer s3cret\u20ac", False),
        (None, False),
    ],
)
def test_a_bearer_token_is_exact_its_scheme_in_any_case_after_one_or_more_spaces(
    authorization, is_admitted
):
    source = posts({"auth": BEARER}, TOKEN="s3cret")

    headers = {} if authorization is None else {"authorization": authorization}
    assert admitted(source, **headers) is is_admitted


@pytest.mark.parametrize(
    ("value", "is_admitted"),
    [
        ("two words", True),
        (" \ttwo words\t ", True),
        ("two  words", False),
        ("Two words", False),
        ("two", False),
        ("", False),
        (None, False),
    ],
)
def test_a_header_has_a_name_in_any_case_and_an_exact_value(value, is_admitted):
    source = posts({"auth": HEADER}, KEY="two words")

    assert admitted(source, **({} if value is None else {"x_key": value})) is is_admitted


def test_a_credential_beyond_ascii_is_compared_as_it_came_over_the_wire():
    source = posts({"auth": HEADER}, KEY="schlüssel?")

    assert admitted(source, x_key="schlüssel?".encode().decode("latin-1"))
    assert not admitted(source, x_key="schlüssel?")
    assert not admitted(source, x_key="schlüssel?".encode().decode("latin-1")[:-1] + "\u20ac")
    assert not admitted(source, x_key="\ud800")


@pytest.mark.parametrize("missing", [{}, {"authorization": "Bearer wrong"}])
def test_a_missing_credential_is_compared_as_a_wrong_one_is(missing, monkeypatch):
    compared = []
    monkeypatch.setattr(
        "headrace.connectors.http.source.hmac.compare_digest",
        lambda *pair: compared.append(pair),
    )
    source = posts({"auth": BEARER}, TOKEN="s3cret")

    admitted(source, **missing)

    assert [wanted for _, wanted in compared] == [b"Bearer s3cret"]


@pytest.mark.parametrize(
    ("auth", "secrets", "fault"),
    [
        (BEARER, {"TOKEN": ""}, resolves_to_nothing("token")),
        (HEADER, {"KEY": ""}, resolves_to_nothing("value")),
        ({"type": "bearer", "token": ""}, {}, resolves_to_nothing("token")),
        (BEARER, {"TOKEN": "s3cret\n"}, no_header_can_carry("token")),
        (HEADER, {"KEY": " blank"}, no_header_can_carry("value")),
        (
            HEADER,
            {},
            Fault(
                "unresolved-secret",
                "nothing resolves '${KEY}': looked in the environment and the secrets file",
                found="${KEY}",
                expected="an environment variable KEY or an entry in the --secrets file",
                path=("auth", "value"),
            ),
        ),
    ],
)
def test_a_credential_that_nobody_could_present_is_refused_at_build(auth, secrets, fault):
    ctx = StubContext(secrets=secrets)

    with pytest.raises(BuildRefused) as refused:
        HttpInput.load({"auth": auth}).source(ctx)

    assert refused.value.fault == fault
    assert ctx.ingress is None


def test_the_name_of_a_header_is_trimmed():
    source = posts({"auth": {**HEADER, "name": " X-Key "}}, KEY="k")

    assert admitted(source, x_key="k")
