"""What can come of a run of a script, as far as its text shows."""

from __future__ import annotations

import pytest

from headrace.operators.script.scriptbranches import ways

EMITTED, SILENT, FAILED = "emitted", "emitted nothing", "failed"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("emit(msg);", [EMITTED, FAILED]),
        ("msg.x = 1;\nemit(msg)", [EMITTED, FAILED]),
        ("if msg.x > 1 { msg.y = 1; } emit(msg);", [EMITTED, FAILED]),
        ("if msg.x > 1 { emit(msg); }", [EMITTED, SILENT, FAILED]),
        ("msg.x > 1 && emit(msg);", [EMITTED, SILENT, FAILED]),
        ("let f = |x| emit(x); f.call(msg);", [EMITTED, SILENT, FAILED]),
        ("if msg.x == 1 { return; } emit(msg);", [EMITTED, SILENT, FAILED]),
        ("// emit(msg);\nif false { emit(msg); }", [EMITTED, SILENT, FAILED]),
        ("/* {\n */ emit(msg);", [EMITTED, FAILED]),
        ('let text = "} // {"; emit(text);', [EMITTED, FAILED]),
        ('let text = `{`; let sign = \'}\'; let more = "\\"{"; emit(text);', [EMITTED, FAILED]),
        ("let map = #{ a: 1 }; emit(map);", [EMITTED, FAILED]),
        ("try { msg.x = 1 / msg.y; } catch { } emit(msg);", [EMITTED]),
        ("try { emit(msg.x.y); } catch { }", [EMITTED, SILENT]),
        ('remember("a", #{ x: 1 });', [SILENT, FAILED]),
        ('Fn("em" + "it").call(msg);', [EMITTED, SILENT, FAILED]),
    ],
)
def test_the_text_shows_what_can_come_of_it(text: str, found: list[str]):
    assert [*ways(text)] == found


def test_a_long_text_takes_no_time():
    assert [*ways("/*" * 10_000 + "'" * 10_000 + "`" + "emit(msg); " * 10_000)]
