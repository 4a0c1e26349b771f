"""`preset: combined` and `common`: lines of Apache and nginx."""

import pytest

from tests.operators.parsed import read

LINE = (
    '203.0.113.7 - alice [22/Nov/2026:12:00:07 +0100] "GET /api/items/7?q=a HTTP/1.1" 200 512 '
    '"https://shop.example/list" "Mozilla/5.0 (X11; Linux x86_64)"'
)
COMMON = {
    "ip": "203.0.113.7",
    "user": "alice",
    "at": "2026-11-22T12:00:07+01:00",
    "method": "GET",
    "path": "/api/items/7?q=a",
    "protocol": "HTTP/1.1",
    "status": 200,
    "bytes": 512,
}
COMBINED = COMMON | {
    "referer": "https://shop.example/list",
    "agent": "Mozilla/5.0 (X11; Linux x86_64)",
}


def combined(text, **options):
    return read({"preset": "combined"}, text, **options)


def test_a_combined_line_has_typed_fields():
    assert combined(LINE) == COMBINED


@pytest.mark.parametrize("end", ["\n", "\r\n", ' "10.0.0.1" 0.003'])
def test_what_follows_is_left_out(end):
    assert combined(LINE + end) == COMBINED


@pytest.mark.parametrize("end", ["", "\n", ' "-" "-"'])
def test_a_common_line_has_all_but_where_it_came_from(end):
    line = LINE[: LINE.index(' "https')] + end

    assert read({"preset": "common"}, line) == COMMON


def test_a_dash_is_null():
    line = '::1 - - [01/Jan/2026:00:00:00 +0000] "HEAD / HTTP/2.0" 304 - "-" "-"'

    made = combined(line)

    nulls = {name for name, value in made.items() if value is None}
    assert nulls == {"user", "bytes", "referer", "agent"}
    assert combined(line, nulls=[]) == "'value' does not fit combined"
    assert combined(line.replace(" - ", " 0 "), nulls=["0"])["agent"] == "-"


@pytest.mark.parametrize(
    ("request_", "kept"),
    [("-", None), ("", ""), (r"\x16\x03\x01", r"\x16\x03\x01"), ("GET /a b HTTP/1.1", ...)],
)
def test_a_request_that_is_none_is_kept_whole(request_, kept):
    made = combined(LINE.replace("GET /api/items/7?q=a HTTP/1.1", request_))

    assert made == COMBINED | {
        "method": None,
        "path": None,
        "protocol": None,
        "request": request_ if kept is ... else kept,
    }


def test_a_path_may_have_escapes():
    made = combined(LINE.replace("/api/items/7?q=a", r"/a\x22b\"c"))

    assert (made["path"], made["protocol"]) == (r"/a\x22b\"c", "HTTP/1.1")
    assert "request" not in made


def test_quotes_inside_are_escaped_and_stay_as_they_are_written():
    agent = r"a \"b\" \\"

    assert combined(LINE.replace("Mozilla/5.0 (X11; Linux x86_64)", agent))["agent"] == agent


@pytest.mark.parametrize(
    "text",
    [
        "",
        LINE[:-1],
        LINE.replace("22/Nov", "31/Nov"),
        LINE.replace("Nov", "Nev"),
        LINE.replace("12:00:07", "25:00:07"),
        LINE.replace("+0100", "+01"),
        LINE.replace(" 200 ", " 2000 "),
        LINE.replace("GET", 'G"ET'),
        " " + LINE,
        LINE + "x",
        "203.0.113.7 " * 5000,
        '"' * 65_536,
        LINE[: LINE.index("GET")] + "\\a" * 30_000,
    ],
)
def test_anything_else_does_not_fit(text):
    assert combined(text) == "'value' does not fit combined"
