"""Addresses of other people's HTTP servers."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from marshmallow import ValidationError
from yarl import URL

from headrace.compiler.schema.records import faults_of
from headrace.compiler.schema.urls import HttpUrl, ParsedUrl
from headrace.compiler.text.diagnostics import shown

NO_BEGINNING = "it does not begin with http:// or https://"
NO_HOST = "its host is malformed"
NO_PORT = "its port is not a number from 1 to 65535"


def objection(text: str) -> str:
    """Return why ``text`` is refused."""
    with pytest.raises(ValidationError) as refused:
        HttpUrl().deserialize(text)
    [fault] = faults_of(refused.value)
    assert fault.expected == "an absolute http or https url"
    assert fault.code == "not-a-url"
    return fault.message


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", NO_BEGINNING),
        ("sink.example/in", NO_BEGINNING),
        ("//sink.example/in", NO_BEGINNING),
        ("http:sink.example", NO_BEGINNING),
        ("ftp://sink.example/", NO_BEGINNING),
        ("http:///in", "it names no host"),
        ("http://:80/in", "it names no host"),
        ("http://sink example/", "it holds a blank or a control character"),
        ("http://sink.example/a b", "it holds a blank or a control character"),
        ("http://sink.example/\u0000", "it holds a blank or a control character"),
        ("http://sink.example/\r\nX-Other: 1", "it holds a blank or a control character"),
        ("http://sink.example:0/", NO_PORT),
        ("http://sink.example:65536/", NO_PORT),
        ("http://sink.example:http/", NO_PORT),
        ("http://[::1/", NO_HOST),
        ("http://[::g]/", NO_HOST),
        ("http://si%6ek.example/", NO_HOST),
        ("http://sink|example/", NO_HOST),
        ("http://sink..example/", NO_HOST),
        (f"http://{'s' * 64}.example/", NO_HOST),
        ("http://sink.example/#part", "it has a fragment ('#...'), which is never sent"),
    ],
)
def test_what_cannot_be_requested_is_refused(text, why):
    assert objection(text) == f"{shown(text)} is not an absolute http or https url: {why}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ftp://me:pw@sink.example/", NO_BEGINNING),
        ("http://me:p/w@sink.example/", NO_PORT),
        ("http://me:p#w@sink.example/", "it has a fragment ('#...'), which is never sent"),
        ("http://m%3Ae:pw@sink.example/", "its user name holds a colon"),
        ("http://***@a/", "'***' hides its user info, as in an echo: write it anew"),
    ],
)
def test_what_may_hold_a_password_is_not_shown(text, why):
    assert objection(text) == f"this is not an absolute http or https url: {why}"


def test_neither_is_what_stands_in_the_place_of_a_url():
    with pytest.raises(ValidationError) as refused:
        HttpUrl().deserialize(["http://me:pw@sink.example/"])

    [fault] = refused.value.messages
    assert fault.message == "expected an absolute http or https url, found a list"
    assert "pw" not in repr(fault)


@pytest.mark.parametrize(
    "text",
    [
        "http://sink",
        "HTTPS://Sink.Example:8443/a/b?c=d&e=%20",
        "http://127.0.0.1:1/",
        "http://[::1]:65535/",
        "http://straße.example/ü",
        "http://under_score.example./",
    ],
)
def test_what_can_be_requested_is_taken_as_it_is_written(text):
    address = HttpUrl().deserialize(f" {text} ")

    assert (address.dump(), str(address), address.user) == (text, text, None)


@pytest.mark.parametrize(
    ("text", "user", "password"),
    [
        ("https://me:pw@sink.example/in", "me", "pw"),
        ("https://me@sink.example/in", "me", ""),
        ("https://m%20e:p%40w%3A@sink.example/in", "m e", "p@w:"),
        ("https://me:p@w@sink.example/in", "me", "p@w"),
    ],
)
def test_user_info_is_kept_apart_and_shown_nowhere(text, user, password):
    address = HttpUrl().deserialize(text)

    assert (address.user, address.password) == (user, password)
    assert str(address) == "https://sink.example/in"
    assert repr(address) == "Address('https://sink.example/in')"
    assert address.dump() == "https://***@sink.example/in"


def test_addresses_are_compared_as_they_are_written():
    assert ParsedUrl("http://a/") == ParsedUrl("http://a/")
    assert len({ParsedUrl("http://a/"), ParsedUrl("http://a/"), ParsedUrl("http://b/")}) == 2
    assert ParsedUrl("http://a/") != "http://a/"


PIECES = st.text(st.sampled_from("abzß0.:/?@[]%-_~\\|^{}é€"), max_size=12)


@given(st.builds("http://{}{}{}".format, PIECES, st.sampled_from(["", "@", ":", "/", "?"]), PIECES))
@example("http://[v1.a]/")
@example("http://[::1%25eth0]/")
@example("http://a:@b/")
@example("http://\uff45.example/")
def test_whatever_is_taken_can_be_requested(text):
    try:
        address = HttpUrl().deserialize(text)
    except ValidationError:
        return

    url = URL(address.location)

    assert url.raw_host
    assert url.user is None
    assert url.password is None
