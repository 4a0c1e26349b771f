"""The session cookie: how it is written, and how it is found among others."""

from __future__ import annotations

import pytest

from headrace.web.auth.sessions import Cookies, is_over_tls, session_ids

ID = "ab" * 32


def proto(*values: str) -> list[tuple[bytes, bytes]]:
    return [(b"x-forwarded-proto", value.encode()) for value in values]


def test_the_cookie_is_for_this_site_and_no_script() -> None:
    assert Cookies().holding(ID, []) == f"headrace_session={ID}; HttpOnly; SameSite=Strict; Path=/"


def test_the_cookie_that_is_taken_back_has_the_same_attributes_and_no_value() -> None:
    said = Cookies().cleared(proto("https"))

    assert said == "headrace_session=; HttpOnly; SameSite=Strict; Path=/; Secure; Max-Age=0"


@pytest.mark.parametrize(
    ("values", "is_secure"),
    [
        ([], False),
        (["http"], False),
        (["https"], True),
        (["HTTPS"], True),
        (["https, http"], True),
        ([" https ,http"], True),
        (["http, https"], False),
        (["http", "https"], False),
        (["https", "http"], True),
        (["httpss"], False),
        ([""], False),
    ],
)
def test_it_is_secure_when_the_first_proxy_was_asked_over_tls(
    values: list[str], is_secure: bool
) -> None:
    assert is_over_tls(proto(*values)) == is_secure
    assert Cookies().holding(ID, proto(*values)).endswith("; Secure") == is_secure


@pytest.mark.parametrize(
    ("same_site", "attributes"),
    [
        ("strict", "HttpOnly; SameSite=Strict; Path=/"),
        ("lax", "HttpOnly; SameSite=Lax; Path=/"),
        ("none", "HttpOnly; SameSite=None; Path=/; Secure"),
    ],
)
def test_what_a_setting_says_of_the_site(same_site: str, attributes: str) -> None:
    assert Cookies(same_site).holding(ID, []) == f"headrace_session={ID}; {attributes}"


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([], []),
        ([b"headrace_session=a"], [b"a"]),
        ([b"x=1; headrace_session=a; y=2"], [b"a"]),
        ([b"headrace_session=a; headrace_session=b"], [b"a", b"b"]),
        ([b"headrace_session=a", b"headrace_session=b"], [b"a", b"b"]),
        ([b"x_headrace_session=a; headrace_session_x=b"], []),
        ([b"headrace_session"], []),
        ([b"a=1;headrace_session=a;"], [b"a"]),
        ([b"headrace_session="], [b""]),
        ([b" headrace_session = a "], [b"a"]),
        ([b"x=headrace_session=a"], []),
        ([b"headrace_session=a=b"], [b"a=b"]),
        ([b"HEADRACE_SESSION=a"], []),
        ([b";;=;\xff\x00=; headrace_session=\xff"], [b"\xff"]),
    ],
)
def test_the_cookie_is_found_among_others(headers: list[bytes], found: list[bytes]) -> None:
    assert session_ids([(b"cookie", each) for each in headers]) == found


def test_no_other_header_holds_a_cookie() -> None:
    assert session_ids([(b"x-cookie", b"headrace_session=a")]) == []
