"""The mapping `replace`: a text in a string, or what matches a regular expression."""

import asyncio
from functools import partial

import pytest

from headrace.compiler.code import TakesLong
from headrace.compiler.lowering.apart import Apart
from headrace.compiler.lowering.chain import fuse
from headrace.operators.map import Map
from tests.compiler.lowering.sliced import longest_turn
from tests.doubles import refusals
from tests.operators.mappings import a_map, copy
from tests.slowness import shortest, slowness

LARGEST = 16 * 2**20

needs_engine = pytest.mark.engine


def replace(from_="a", **options):
    return {"type": "replace", "from": from_, **options}


@pytest.mark.parametrize(
    ("options", "found", "written"),
    [
        ({"text": "a", "with": "b"}, "banana", "bbnbnb"),
        ({"text": "a", "with": "b", "first": True}, "banana", "bbnana"),
        ({"text": "an", "with": "<$0>"}, "banana", "b<$0><$0>a"),
        ({"text": "an", "with": "<$0>", "first": True}, "banana", "b<$0>ana"),
        ({"text": "x", "with": "yy"}, "banana", "banana"),
        ({"text": "é", "with": ""}, "café", "caf"),
        ({"text": ".", "with": ","}, "1.5", "1,5"),
    ],
)
def test_a_text_is_replaced_as_it_is(mapped, options, found, written):
    assert mapped(a_map(replace(**options)), {"a": found}) == {"a": written}


@needs_engine
@pytest.mark.parametrize(
    ("options", "found", "written"),
    [
        ({"regex": r"\?.*", "with": "", "first": True}, "/a?b=1?", "/a"),
        ({"regex": r"\d+", "with": "#"}, "a1b22", "a#b#"),
        ({"regex": r"\d+", "with": "#", "first": True}, "a1b22", "a#b22"),
        ({"regex": r"(?<year>\d+)-(?<month>\d+)", "with": "$month/${year}"}, "2026-11", "11/2026"),
        ({"regex": r"(?<year>\d+)-(?<month>\d+)", "with": "${year}_$$5"}, "2026-11", "2026_$5"),
        ({"regex": "(?<some>x)?b", "with": "<$some>"}, "abxb", "a<><x>"),
        ({"regex": "x*", "with": "-"}, "axxb", "-a-b-"),
        ({"regex": "é", "with": "e$"}, "café", "cafe$"),
        ({"regex": "^x", "with": "y"}, "xx", "yx"),
        ({"regex": "nothing", "with": "y"}, "x", "x"),
    ],
)
def test_what_matches_is_replaced_and_groups_are_put_in(mapped, options, found, written):
    assert mapped(a_map(replace(**options)), {"a": found}) == {"a": written}


@needs_engine
def test_it_writes_where_it_is_told_and_a_missing_text_has_a_default(mapped):
    mapping = replace("p.a", regex="a", **{"with": "b", "as": "q.b"})
    default = mapping | {"default": {"type": "text", "value": "none"}}

    assert mapped(a_map(mapping), {"p": {"a": "a"}}) == {"p": {"a": "a"}, "q": {"b": "b"}}
    assert mapped(a_map(default), {"p": {"a": None}}) == {"p": {"a": None}, "q": {"b": "none"}}
    assert mapped(a_map(default), {"p": {"a": "xa"}}) == {"p": {"a": "xa"}, "q": {"b": "xb"}}
    assert mapped(a_map(mapping, on_missing="omit"), {}) == {}


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({"with": ""}, ["mappings[0]: there is nothing to replace: give 'text' or 'regex'"]),
        (
            {"with": "", "text": "a", "regex": "a"},
            ["mappings[0]: it replaces one thing, not both"],
        ),
        ({"with": "", "text": ""}, ["mappings[0].text: an empty text is everywhere"]),
        ({"text": "a"}, ["mappings[0].with: this key is required"]),
        ({"with": "", "regex": "("}, ["mappings[0].regex: unclosed group"]),
        (
            {"with": "$yaer", "regex": "(?<year>a)(?<day>b)"},
            [
                "mappings[0].with: this pattern has no group 'yaer': there is year, day;"
                " a dollar is written $$"
            ],
        ),
        (
            {"with": "$1", "regex": "(a)"},
            [
                "mappings[0].with: this pattern has no group '1': none has a name, as in"
                " (?<year>[0-9]+); a dollar is written $$"
            ],
        ),
    ],
)
@needs_engine
def test_what_cannot_be_meant_is_refused(options, reasons):
    assert refusals(Map, a_map(replace(**options))) == reasons


@needs_engine
@pytest.mark.parametrize(
    ("options", "found", "failure"),
    [
        ({"text": "a", "with": "b"}, 5, "field 'a' is a number: expected a string"),
        ({"text": "a", "with": "bb"}, ["a"], "field 'a' is a list: expected a string"),
        ({"regex": "a", "with": "b"}, True, "field 'a' is a boolean: expected a string"),
        (
            {"regex": "a", "with": "b"},
            "a" * 3_001,
            "field 'a' is too long: its regex takes at most 3,000 bytes",
        ),
        (
            {"regex": "a", "with": "b"},
            "é" * 1_501,
            "field 'a' is too long: its regex takes at most 3,000 bytes",
        ),
        (
            {"regex": "a", "with": "b" * 10_000},
            "a" * 3_000,
            "the result is longer than 16,777,216 characters",
        ),
        (
            {"text": "a", "with": "b" * 10_000},
            "a" * 3_000,
            "the result is longer than 16,777,216 characters",
        ),
    ],
)
def test_what_it_cannot_do_fails_the_batch(mapped, options, found, failure):
    assert mapped(a_map(replace(**options)), {"a": found}) == f"mapping 0 ('replace'): {failure}"


@needs_engine
@pytest.mark.parametrize("options", [{"first": True, "regex": "x"}, {"regex": "^x"}])
def test_the_first_match_is_replaced_in_longer_texts(mapped, options):
    text = "x" * 20_000

    written = mapped(a_map(replace(**options, **{"with": ""})), {"a": text})

    assert written == {"a": text[1:]}


@needs_engine
@pytest.mark.parametrize(("characters", "batch"), [(700, 2), (100, 100), (40, 500)])
def test_a_batch_of_long_texts_is_left_to_slices(ctx, characters, batch):
    loop = made(ctx).loop

    with pytest.raises(TakesLong):
        loop([{"a": "x"}] * (batch - 1) + [{"a": "x" * (2 * characters)}])
    assert loop([{"a": "x" * characters}] * batch) == [{"a": "y" * characters}] * batch


@needs_engine
@pytest.mark.parametrize(("characters", "mappings"), [(700, 2), (100, 100)])
def test_many_mappings_share_what_is_done_at_once(ctx, characters, mappings):
    loop = made(ctx, mappings).loop

    with pytest.raises(TakesLong):
        loop([{"a": "x" * (2 * characters)}])
    assert loop([{"a": "x" * characters}]) == [{"a": "y" * characters}]


@needs_engine
def test_in_slices_others_have_a_turn_before_each_long_text(ctx):
    paced = made(ctx).paced([{"a": "x"}, {"a": "x" * 2_000}, {"a": "x" * 2_000}, {"a": "x"}])

    *turns, last = paced

    assert turns == [None] * 3
    assert last == [{"a": "y"}, {"a": "y" * 2_000}, {"a": "y" * 2_000}, {"a": "y"}]


@needs_engine
def test_in_slices_they_have_one_as_well_before_it_is_done_again_to_one_that_fails(ctx):
    transform = Map.load(
        a_map(replace(regex="x", **{"with": "y"}), copy("b", "c"), on_error="skip")
    )
    lost = []
    begin = transform.paced_for_each_batch(ctx)
    apart = Apart([lambda batch: begin()(batch)], [lambda failing: lost.extend(failing)])
    source = partial(transform.generate, ctx=ctx)
    fused = fuse([source], "p1 transforms[0]", apart, slow_parts=transform.slow_parts)

    *turns, last = fused.paced([{"a": "x" * 2_000}, {"a": "x", "b": 1}])

    # Before the long text, both times; before and after it is done to by itself, and there between the
    # mappings; and at the end.
    assert turns == [None] * 6
    assert (last, len(lost)) == ([{"a": "y", "b": 1, "c": 1}], 1)


@pytest.mark.timed
@needs_engine
@pytest.mark.parametrize("on_error", ["skip", "fail"])
@pytest.mark.parametrize(
    ("characters", "batch", "failing", "mappings"),
    [
        (3_000, 10, 10, 1),
        (67, 500, 20, 1),
        (150, 100, 100, 1),
        (335, 20, 20, 1),
        (1_500, 1, 1, 1),
        (3_000, 1, 1, 8),
        (3_000, 4, 4, 4),
    ],
)
def test_no_turn_is_long_where_it_is_done_twice(on_error, characters, batch, failing, mappings):
    names = [f"t{n}" for n in range(mappings)]
    each_looks_to_the_end = {"regex": "a.*c|a", "with": "x"}
    transform = Map.load(
        a_map(
            *(replace(name, **each_looks_to_the_end) for name in names),
            copy("b"),
            on_error=on_error,
        )
    )
    texts = dict.fromkeys(names, "a" * characters)
    messages = [texts | {"b": 1}] * (batch - failing) + [texts] * failing

    def seconds():
        return asyncio.run(longest_turn(transform, messages))

    assert shortest(seconds, 0.02, times=4) < 0.02 * slowness()


def made(ctx, mappings=1):
    transform = Map.load(a_map(*[replace(regex="x", **{"with": "y"})] * mappings))
    source = partial(transform.generate, ctx=ctx)
    return fuse([source], "p1 transforms[0]", slow_parts=transform.slow_parts)


@needs_engine
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"regex": r"[^0-9+]"}, []),
        ({"regex": r"\?.*", "first": True}, []),
        ({"regex": "[ab]*a[ab]{14}", "first": True}, []),
        (
            {"regex": "[ab]*a[ab]{14}"},
            ["this pattern is replaced in texts of at most 350 bytes: a longer one fails"],
        ),
        ({"text": "a"}, []),
    ],
)
def test_a_pattern_for_which_texts_have_to_be_short_is_told(options, said):
    transform = Map.load(a_map(replace(**options, **{"with": ""})))

    found = [*transform.examine(None)]

    assert [each.message for each in found] == said
    assert [each.path for each in found] == [("mappings", 0, "regex")] * len(said)


@needs_engine
def test_a_map_that_looks_for_a_pattern_takes_long():
    assert Map.load(a_map(replace(regex="x", **{"with": ""}))).slow_parts == 1
    assert Map.load(a_map(replace(text="x", **{"with": ""}))).slow_parts == 0
