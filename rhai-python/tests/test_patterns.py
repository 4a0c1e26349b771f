"""Patterns in scripts: what they give, and what they may cost."""

import time

import pytest
from rhai import BudgetError, Pattern, PatternError, Paused, RunError, Script

LONGEST_OF_ALL = 3_000


def run(expression, value=None, **limits):
    [found] = Script(f"emit({{ {expression} }})", **limits).run(value)
    return found


def test_a_text_matches_somewhere_or_nowhere():
    assert run(r"matches(msg, `\d+$`)", "pump 12") is True
    assert run(r"msg.matches(`^\d`)", "pump 12") is False


def test_groups_are_a_map_and_what_took_no_part_is_nothing():
    regex = r"`^(?<a>x)|(?<b>\d)`"

    assert run(f"msg.parse_regex({regex})", "7") == {"a": None, "b": "7"}
    assert run(f"msg.parse_regex({regex})", "none") is None
    assert run("msg.parse_regex(`(a)`)", "a") == {}


def test_all_matches_are_replaced_and_the_text_stays_as_it_was():
    script = "let made = msg.replace_regex(`(?<y>[0-9]+)-`, `$y/`); [made, msg]"

    assert run(script, "1-2-3") == ["1/2/3", "1-2-3"]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("msg.matches(`(`)", "unclosed group"),
        ("msg.replace_regex(`a`, `$b`)", "this pattern has no group 'b'"),
        (r"msg.parse_regex(`\p{L}{90}`)", "this pattern is too large"),
        (
            "msg.replace_regex(`a`, `b`)",
            "the text is too long for this pattern, which takes 3000 bytes",
        ),
        ("msg.matches(`a`)", "the text is too long for this pattern, which takes"),
    ],
)
def test_what_cannot_be_done_fails_the_run_where_it_is_and_can_be_caught(expression, said):
    long = "x" * 2**20

    with pytest.raises(RunError, match=said) as failed:
        Script(f"emit(1);\nemit({expression})").run(long)
    assert failed.value.line == 2
    assert Script(f"try {{ {expression}; }} catch {{ emit(5) }}").run(long) == [5]


def test_what_is_too_long_for_all_is_told_before_it_takes_time():
    assert run("msg.replace_regex(`x`, `y`)", "x" * LONGEST_OF_ALL) == "y" * LONGEST_OF_ALL
    with pytest.raises(RunError, match="which takes 3000 bytes"):
        run("msg.replace_regex(`x`, `y`)", "x" * (LONGEST_OF_ALL + 1))


def test_a_text_becomes_no_longer_than_a_text_may():
    with pytest.raises(BudgetError) as stopped:
        run("msg.replace_regex(`x`, `yyyy`)", "x" * 1_000, max_string=2_000)
    assert stopped.value.limit == "max_string"


def test_patterns_that_are_made_anew_each_time_are_stopped_as_anything_that_takes_long():
    script = Script("let n = 0; loop { n += 1; matches(msg, `a{${n % 1000}}`); }", time_limit=0.1)
    began = time.thread_time()

    with pytest.raises(BudgetError):
        script.run("a")
    assert time.thread_time() - began < 0.5


@pytest.mark.timed
def test_a_run_pauses_between_patterns():
    script = Script(
        "for i in 0..300 { replace_regex(msg, `[ab]*a[ab]{${i}}x|.`, ``); } emit(1)", time_limit=9
    )
    run = script.start(["ab" * 50], 0.005)
    longest, slices = 0.0, 0

    while isinstance(run, Paused) and slices < 100:
        began = time.thread_time()
        if run.resume(0.005) is not None:
            break
        longest = max(longest, time.thread_time() - began)
        slices += 1

    assert slices > 5
    assert longest < 0.05


def test_a_pattern_that_is_known_costs_next_to_none():
    count = "let n = 0; for i in 0..3000 { if matches(msg, `b$`) { n += 1; } } n"

    assert run(count, "ab") == 3_000


def test_what_is_kept_of_patterns_is_not_the_runs():
    script = Script(
        "for i in 0..90 { matches(`b${i}`, `[ab]*a[ab]{${i}}`); } emit(1)", max_memory=100_000
    )

    assert [script.run(None) for _ in range(3)] == [[1]] * 3


@pytest.mark.timed
def test_a_hostile_text_takes_as_long_as_any_other():
    began = time.thread_time()

    assert run("msg.matches(`(a+)+$`)", "a" * 20_000 + "!") is False
    assert time.thread_time() - began < 0.05


def test_a_refused_pattern_tells_the_place():
    with pytest.raises(PatternError) as refused:
        Pattern("é(")
    assert (refused.value.message, refused.value.at) == ("unclosed group", 1)
    assert issubclass(PatternError, ValueError)
