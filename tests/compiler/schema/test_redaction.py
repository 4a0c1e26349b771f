"""Redaction: what a driver says of a secret, and what is shown of it."""

import gc
import html
import json
import re
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import pytest

from headrace.compiler.schema.redaction import LONGEST_WORD, SHORTEST, Hidden, Redaction
from headrace.compiler.schema.secrets import Secret, Secrets

VALUES = {
    "USER": "operator1",
    "PASS": "tr0ub4dor&3",
    "ODD": "s3s@me/ö:50%,\"q\" 'x'\\y",
    "ENCODED": "s3s%40me%2f%c3%b6pen",
    "BUS": "nats://operator1:tr0ub4dor&3@bus:4222",
    "HOST": "broker.example.org",
    "A": "a",
    "PORT": "1883",
    "EMPTY": "",
    "SIX": "purple",
    "LINES": "-----BEGIN-----\nMIIEpAIB\n-----END-----\n",
}


def redaction(*templates: str) -> Redaction:
    """Return what hides the values of these templates."""
    secrets = Secrets(VALUES, {})
    for template in templates:
        secrets.resolve(Secret(template))
    return secrets.redact


def test_a_value_is_shown_as_its_template():
    assert redaction("${PASS}")("wrong password 'tr0ub4dor&3'") == "wrong password '${PASS}'"


def test_a_value_is_known_whole_and_by_what_its_references_stand_for():
    hide = redaction("nats://${USER}:${PASS}@bus:4222")

    assert hide("cannot connect to nats://operator1:tr0ub4dor&3@bus:4222 (refused)") == (
        "cannot connect to nats://${USER}:${PASS}@bus:4222 (refused)"
    )
    assert hide("user operator1, pass tr0ub4dor&3") == "user ${USER}, pass ${PASS}"


ODD = VALUES["ODD"]


@pytest.mark.parametrize(
    "written",
    [
        ODD,
        quote(ODD),
        quote(ODD, safe=""),
        quote(ODD, safe="@:'"),
        quote(ODD).lower(),
        quote_plus(ODD),
        json.dumps(ODD)[1:-1],
        json.dumps(ODD, ensure_ascii=False)[1:-1],
        json.dumps(ODD)[1:-1].replace("/", "\\/"),
        repr(ODD)[1:-1],
        repr(ODD.encode())[2:-1],
        ODD.upper(),
        html.escape(ODD),
        html.escape(ODD).replace("&#x27;", "&apos;").replace("ö", "&ouml;"),
        html.escape(ODD).replace("&#x27;", "&#39"),
        html.escape(json.dumps(ODD)[1:-1]),
        "".join(f"&#{ord(each)};" for each in ODD),
        "".join(f"&#x{ord(each):X};" for each in ODD),
        "".join(f"&#{ord(each):05};" for each in ODD),
        re.sub(r"[^A-Za-z0-9]", lambda found: f"&#x{ord(found[0]):02x};", ODD),
        ascii(ODD)[1:-1],
        re.sub(r"[^A-Za-z0-9]", lambda found: f"\\u{ord(found[0]):04x}", ODD),
        "".join(f"\\u{ord(each):04X}" for each in ODD),
        html.escape("".join(f"\\u{ord(each):04X}" for each in ODD)),
        json.dumps(json.dumps(ODD)[1:-1])[1:-1],
        ODD.replace("ö", "%F6"),
        ODD.encode("latin-1").decode("utf-8", "replace"),
    ],
)
def test_a_value_is_found_however_it_is_written(written):
    assert redaction("${ODD}")(f"<{written}>") == "<${ODD}>"


def test_what_is_written_as_an_escape_and_is_no_value_stays_as_it_is():
    hide = redaction("${PASS}", "${ODD}")
    said = (
        r"&lt;b&gt; &#65;BC &amp; &nosuch; &#xZZ &#0; &#99999999; 1&2; %zz %4 \u00 \u0041 \xc3 \\"
    )

    assert hide(said) == said


@pytest.mark.parametrize(
    "value",
    [
        "ends-with-one\\",
        "ends-with-two\\\\",
        "ends%2",
        "C:\\new\\tab",
        "a%40b&amp;c",
        "+ and +-",
        "ß\xb5-Ã¶-longer",
    ],
)
def test_a_value_that_looks_like_an_escape_is_found_as_well(value):
    hide = Redaction()
    hide.hide(value)

    ways = [str, quote, quote_plus, html.escape, lambda it: json.dumps(it)[1:-1], ascii]
    for written in (way(value).strip("'") for way in ways):
        assert hide(f"<{written}>") == "<***>"


def steps(work: Callable[[], object]) -> int:
    """Return how many lines of Python something takes."""
    count = 0

    def traced(frame: FrameType, what: str, argument: object) -> Any:
        nonlocal count
        count += what == "line"
        return traced

    before = sys.gettrace()
    gc.disable()  # what other tests have left would be finalized in between
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def test_many_values_take_no_more_steps_than_few():
    said = 'refused {"a": 1} &amp; 100%25 of http://broker.example.org:9092/x?y=%20z ' * 30

    def taken(values: int) -> tuple[int, int]:
        hide = Redaction()
        for number in range(values):
            hide.hide(f"{number:05}-t0ken/&+")
        one_more = steps(lambda: hide.hide("one-more/&+"))
        return one_more, steps(lambda: hide(said))

    taken(1)  # what is read once

    assert taken(3_000) == taken(10)


ESCAPES = [
    "\\",
    "\\\\u0061",
    "\\u005c",
    "\\n",
    "%",
    "%25",
    "%5c",
    "&",
    "&amp;",
    "&#92;",
    "&#x",
    "\\x5c",
    "://u:p@",
    "\\%25&amp;",
]


@pytest.mark.long
@pytest.mark.parametrize("written", [*ESCAPES, "".join(ESCAPES)])
def test_a_text_of_nothing_but_escapes_takes_steps_that_grow_with_it_no_faster(written):
    hide = Redaction()
    for value in ("s3cr3t-value", "\\" * 9 + "x", "&amp;&amp;x", "%25%25%25%25x"):
        hide.hide(value)
    short = written * (2_000 // len(written))

    assert steps(lambda: hide(short * 4)) < 5 * steps(lambda: hide(short))


@pytest.mark.parametrize("written", ["-", "\\u002d", "-----\\n", "%2d", "-----BEGIN \\n"])
def test_a_text_that_repeats_how_a_value_begins_takes_no_more_steps_for_a_longer_value(written):
    said = written * (1_000 // len(written))

    def taken(size: int) -> int:
        hide = Redaction()
        hide.hide("-----BEGIN PRIVATE KEY-----" + "aB3x" * size)
        return steps(lambda: hide(said))

    taken(1)  # what is read once

    assert taken(1_000) <= 1.1 * taken(20)


def test_a_long_value_is_hidden_among_others_that_begin_like_it_until_its_owner_lets_go():
    hide = Redaction()
    begins = "-----BEGIN PRIVATE KEY-----"
    owners = [Hidden(hide) for _ in range(60)]
    for size, owner in enumerate(owners):
        owner.hide(begins + "ab" * size + "/")

    said = [f"<{quote(begins + 'ab' * size, safe='')}%2f>" for size in range(60)]
    assert {hide(each) for each in said} == {"<***>"}
    for owner in owners[::2]:
        owner.let_go()
    assert [hide(each) == each for each in said] == [True, False] * 30
    for owner in owners[1::2]:
        owner.let_go()
    assert [hide(each) for each in said] == said
    assert not hide._longer


def test_a_value_is_hidden_until_the_last_of_its_owners_lets_go():
    hide = redaction("${USER}")
    one, other = Hidden(hide), Hidden(hide)
    before = len(hide)
    for owner in (one, one, other):
        owner.hide("written-out")
        owner.hide(VALUES["USER"])

    one.let_go()
    assert hide("written-out operator1") == "*** ${USER}"

    other.let_go()
    assert hide("written-out operator1") == "written-out ${USER}"
    assert len(hide) == before


def test_an_owner_that_has_let_go_hides_nothing_more():
    hide = Redaction()
    owner = Hidden(hide)
    owner.let_go()

    owner.hide("written-out")

    assert len(hide) == 0


def test_what_a_template_writes_out_goes_with_its_owner_and_what_it_refers_to_stays():
    secrets = Secrets(VALUES, {})
    owner = Hidden(secrets.redact)
    secrets.resolve(Secret("redis://app:letmein@${HOST}"), owner)
    said = "redis://app@broker.example.org letmein"
    assert secrets.redact(said) == "redis://***@${HOST} ***"

    owner.let_go()

    assert secrets.redact(said) == "redis://***@${HOST} letmein"


@pytest.mark.long
def test_a_text_of_nothing_but_references_is_searched_in_time_that_grows_with_its_length():
    hide = redaction("${ODD}", "${PASS}", "${BUS}")
    pieces = ["\\", "%41", "\\u0041", "&#", "&#0000000", "&amp", "&#x0000000", "&&&&", "&ouml"]

    def seconds(times):
        started = time.process_time()
        for piece in pieces:
            hide(piece * times)
        return time.process_time() - started

    seconds(100)

    assert seconds(16_000) < 64 * max(seconds(1_000), 0.001)


def test_a_value_that_is_encoded_is_found_decoded():
    hide = redaction("redis://:${ENCODED}@cache:6379/0")

    decoded = unquote(VALUES["ENCODED"])
    assert hide(f"AUTH failed for {decoded}") == "AUTH failed for ${ENCODED}"
    assert hide(f"AUTH failed for {quote(decoded)}") == "AUTH failed for ${ENCODED}"


def test_lines_of_a_value_may_have_been_folded():
    folded = " ".join(VALUES["LINES"].split())

    assert redaction("${LINES}")(f"no key: {folded}!") == "no key: ${LINES}!"


def test_the_credentials_inside_a_url_are_hidden_by_themselves():
    hide = redaction("${BUS}")

    assert hide("nats://operator1:tr0ub4dor&3@bus:4222 is down") == "${BUS} is down"
    assert hide("'operator1' with tr0ub4dor&3 at bus:4222") == "'***' with *** at bus:4222"


@pytest.mark.parametrize(
    ("template", "said", "shown"),
    [
        ("redis://app:letmein@cache/0", "redis://app:letmein@cache/0", "redis://app:***@cache/0"),
        ("redis://app:letmein@cache/0", "app uses letmein", "app uses ***"),
        ("redis://:letmein@cache/0", "password letmein", "password ***"),
        ("nats://s3same0@bus", "token s3same0", "token ***"),
        ("app:letmein@bus:4222", "letmein", "***"),
        ("nats://a:letmein@b1,nats://a:openup@b2", "letmein openup", "*** ***"),
        ("nats://app:let@me,in:now@bus", "let@me,in:now", "***"),
        ("redis://app:let/me/in@cache", "let/me/in", "***"),
        ("redis://app:let%20me%20in@cache", "'let me in'", "'***'"),
        ("redis://app:letmein@${HOST}", "redis://app:letmein@broker.example.org", None),
    ],
)
def test_a_password_that_a_template_spells_out_is_hidden_in_texts(template, said, shown):
    assert redaction(template)(said) == (shown or "redis://app:***@${HOST}")


def test_a_user_that_a_template_spells_out_is_no_secret():
    assert redaction("nats://operator1:${PASS}@bus")("operator1 may not") == "operator1 may not"


def test_a_host_and_a_whole_url_without_credentials_are_shown_unless_they_are_references():
    said = "cannot connect to broker.example.org:9092"

    assert redaction("broker.example.org:9092")(said) == said
    assert redaction("${HOST}:9092")(said) == "cannot connect to ${HOST}:9092"


def test_what_is_short_or_empty_does_not_mangle_texts():
    hide = redaction("${A}", "${PORT}", "${EMPTY}", "${A}${EMPTY}")
    said = "took 1883 ms for a batch at 127.0.0.1:1883"

    assert len(VALUES["PORT"]) < SHORTEST
    assert hide(said) == said


def test_what_is_not_long_is_hidden_as_a_word_of_its_own():
    hide = redaction("${SIX}")

    assert SHORTEST <= len(VALUES["SIX"]) <= LONGEST_WORD
    assert hide("purple: 'purple', b'purple'; purplebeard") == (
        "${SIX}: '${SIX}', b'${SIX}'; purplebeard"
    )


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("to redis://bob:q@cache:6379/0 and", "to redis://bob:***@cache:6379/0 and"),
        ("to nats://q@bus:4222", "to nats://***@bus:4222"),
        ("to http://h:80/a?b=c@d", "to http://h:80/a?b=c@d"),
        ('{"url":"http://h:80","mail":"a@b"}', '{"url":"http://h:80","mail":"a@b"}'),
        ("see http://h:80, or write to a@b", "see http://h:80, or write to a@b"),
    ],
)
def test_what_stands_before_the_host_of_any_url_is_hidden(said, shown):
    assert Redaction()(said) == shown


def test_what_is_put_in_is_not_looked_at_again():
    secrets = Secrets({"ALPHA": "x${BRAVO}x", "BRAVO": "ALPHA"}, {})
    secrets.resolve(Secret("${ALPHA}"))
    secrets.resolve(Secret("${BRAVO}"))

    assert secrets.redact("x${BRAVO}x ALPHA") == "${ALPHA} ${BRAVO}"


def test_of_values_inside_each_other_the_longer_is_found():
    secrets = Secrets({"SHORT": "correct-horse", "LONG": "correct-horse-battery"}, {})
    secrets.resolve(Secret("${SHORT}"))
    secrets.resolve(Secret("${LONG}"))

    assert secrets.redact("correct-horse-battery correct-horse") == "${LONG} ${SHORT}"


def test_values_that_are_learnt_later_are_hidden_as_well():
    secrets = Secrets(VALUES, {})
    secrets.resolve(Secret("${PASS}"))
    assert secrets.redact("tr0ub4dor&3 operator1") == "${PASS} operator1"

    secrets.resolve(Secret("${USER}"))

    assert secrets.redact("tr0ub4dor&3 operator1") == "${PASS} ${USER}"
