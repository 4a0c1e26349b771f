"""Field flow: what components say about fields, combined along a chain, and held against runs."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from marshmallow import ValidationError

from headrace.compiler.component.fieldflow import (
    FieldUse,
    Passing,
    Paths,
    Shape,
    ValueRange,
    merged,
)
from headrace.compiler.errors import BatchFailed
from headrace.compiler.lowering.dottedpaths import MISSING, DottedPath
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from headrace.operators.reducer import Reducer
from headrace.operators.splitter import Splitter
from tests.compiler.component.test_values import admits
from tests.doubles import StubContext

PATHS = ["a", "b", "c", "a.b", "a.c", "b.a", "a.b.c", "a.b.d"]

paths = st.sampled_from(PATHS)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "1", "true"]),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=6,
)
messages = st.dictionaries(st.sampled_from([*"abc", "a.b", "b.a", "a.b.c"]), values) | values
batches = st.lists(messages, min_size=1, max_size=4)

literals = st.sampled_from(
    [{"type": "text", "value": "t"}, {"type": "number", "value": 1}, {"type": "null"}]
)
operands = st.one_of(
    st.fixed_dictionaries({"type": st.just("field"), "field": paths}),
    st.just({"type": "value", "value": 2}),
)
mappings = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("copy"), "from": paths}, optional={"as": paths, "default": literals}
    ),
    st.fixed_dictionaries({"type": st.just("constant"), "value": literals, "as": paths}),
    st.fixed_dictionaries(
        {
            "type": st.just("coalesce"),
            "from": st.lists(paths, min_size=2, max_size=3),
            "as": paths,
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("cast"), "from": paths, "to": st.sampled_from(["text", "integer"])},
        optional={"as": paths},
    ),
    st.fixed_dictionaries(
        {"type": st.just("arithmetic"), "left": operands, "operator": st.just("add")}
        | {"right": operands, "as": paths}
    ),
    st.fixed_dictionaries(
        {"type": st.just("drop"), "from": st.lists(paths, min_size=1, max_size=2)}
    ),
)
aggregations = st.fixed_dictionaries(
    {"function": st.sampled_from(["count", "first", "collect"]), "as": paths, "field": paths}
)
conditions = st.one_of(
    st.fixed_dictionaries(
        {
            "field": paths,
            "operator": st.sampled_from(["greater_than", "less_than", "equal_to"]),
            "value": st.integers(-2, 2),
        }
    ).map(lambda condition: {"Numeric": condition}),
    st.fixed_dictionaries(
        {
            "field": paths,
            "operator": st.sampled_from(["equal_to", "contains"]),
            "value": st.sampled_from(["", "a", "1"]),
        }
    ).map(lambda condition: {"String": condition}),
)


@st.composite
def loaded(draw, component, documents):
    """Draw a component that loads."""
    try:
        return component.load(draw(documents))
    except ValidationError:
        assume(False)


maps = loaded(
    Map,
    st.fixed_dictionaries(
        {"mappings": st.lists(mappings, min_size=1, max_size=3)},
        optional={
            "keep": st.sampled_from(["all", "mapped"]),
            "on_missing": st.sampled_from(["error", "omit", "null"]),
        },
    ),
)
reducers = loaded(
    Reducer,
    st.fixed_dictionaries(
        {"aggregations": st.lists(aggregations, min_size=1, max_size=2)},
        optional={
            "group_by": st.lists(paths, max_size=2),
            "on_missing": st.sampled_from(["error", "skip"]),
        },
    ),
)
filters = loaded(Filter, conditions)
splitters = st.integers(1, 5).map(lambda size: Splitter(out_size=size))
components = st.one_of(maps, reducers, filters, splitters)


def read(message, path):
    return DottedPath(path).read(message)


def run(component, batch):
    """Return the batches that a component makes of one, none if it fails."""
    try:
        return component.step(StubContext())(batch)
    except BatchFailed:
        return []


def exact(value):
    """Return a value in a form in which true is not 1 and 1 is not 1.0."""
    return repr(value)


def keys(*names, by="inputs[0]"):
    return Passing(Shape.of(names, by))


def used(passing, by="transforms[0]", **use):
    return passing.seen_by(by).after(FieldUse.of(**use))


# What components say, held against what they do.


@given(component=components, batch=batches, value=values, data=st.data())
def test_what_is_not_read_has_no_influence(component, batch, value, data):
    use = component.field_use()
    touched = Paths(use.reads | use.writes | use.removes | use.keys)
    path = data.draw(st.sampled_from([key for key in "abcdz" if key not in touched]))
    changed = [{**each, path: value} if type(each) is dict else each for each in batch]

    before, after = run(component, batch), run(component, changed)

    def without(made):
        return exact(
            [
                [
                    {key: inner for key, inner in each.items() if key != path}
                    if type(each) is dict
                    else each
                    for each in some
                ]
                for some in made
            ]
        )

    assert without(before) == without(after)


@given(component=st.one_of(maps, filters), message=messages, path=paths)
def test_what_is_not_written_or_removed_is_kept_or_else_nothing_is(component, message, path):
    use = component.field_use()
    assume(path not in Paths(use.writes | use.removes | use.keys))

    for batch in run(component, [message]):
        for made in batch:
            found = read(made, path)
            assert exact(found) == exact(read(message, path) if use.keeps else MISSING)


@given(component=reducers, batch=batches, path=paths)
def test_a_reducer_writes_whole_keys_and_keeps_nothing(component, batch, path):
    use = component.field_use()

    for made in run(component, batch):
        for message in made:
            assert {*message} == use.keys
            assert not use.keeps


@given(component=maps, message=messages)
def test_what_is_removed_is_gone_if_nothing_writes_it(component, message):
    use = component.field_use()

    for batch in run(component, [message]):
        for made in batch:
            for path in use.removes:
                if "." not in path and path not in Paths(use.writes):
                    assert read(made, path) is MISSING


@given(component=components, message=messages)
def test_a_message_without_what_is_needed_is_not_handed_on(component, message):
    use = component.field_use()

    if any(read(message, path) is MISSING for path in use.drops_without):
        assert run(component, [message]) == []


@given(component=maps, message=messages)
def test_a_map_asks_for_all_it_reads_but_what_it_wrote_before(component, message):
    use = component.field_use()
    written = Paths(use.writes)

    assert use.asks <= use.reads
    assert {path for path in use.reads if path not in written} <= use.asks


@given(
    chain=st.lists(components, min_size=1, max_size=4),
    batch=batches,
    is_closed=st.booleans(),
)
def test_what_is_known_along_a_chain_holds_for_every_message_of_a_run(chain, batch, is_closed):
    names = {key for message in batch if type(message) is dict for key in message}
    fields = Shape.of(names, "inputs[0]") if is_closed else Shape.anything()
    passing, flowing = Passing(fields, largest=len(batch)), [batch]

    for index, component in enumerate(chain):
        flowing = [made for some in flowing for made in run(component, some)]
        passing = component.passes(passing.seen_by(f"transforms[{index}]"))
        if passing.stopped:
            assert flowing == []
            return
        assert passing.largest is None or all(len(some) <= passing.largest for some in flowing)
        for message in (message for some in flowing for message in some):
            for path in PATHS:
                if passing.missing(path) is not None:
                    assert read(message, path) is MISSING
            for path, told in passing.values.items():
                for _, let_through in told:
                    assert admits(let_through, read(message, path))


# What is known, and who is to blame.


def test_nothing_is_missing_where_anything_may_come():
    assert Passing().missing("a") is None
    assert Passing().missing("a.b") is None


def test_an_input_that_knows_its_fields_has_no_others():
    passing = keys("value", "current_time")

    assert passing.missing("value") is None
    assert passing.missing("value.unit") is None
    assert passing.missing("temp") == ("inputs[0]",)
    assert passing.missing("temp.unit") == ("inputs[0]",)


def test_a_written_path_is_there_and_so_is_the_way_to_it():
    passing = used(keys("a"), writes=["m.n.o"])

    assert [passing.missing(path) for path in ("a", "m", "m.n", "m.n.o", "m.n.o.p")] == [None] * 5
    assert passing.missing("m.x") == ("inputs[0]",)


def test_what_keeps_nothing_is_to_blame_for_the_rest():
    passing = used(Passing(), writes=["a.b"], keeps=False)

    assert passing.missing("a.b") is None
    assert passing.missing("a.c") == ("transforms[0]",)
    assert passing.missing("c") == ("transforms[0]",)


def test_a_key_that_is_written_whole_is_no_way_to_anywhere():
    passing = used(Passing(), keys=["_meta.machine"], keeps=False)

    assert passing.missing("_meta.machine") is None
    assert passing.missing("_meta") == ("transforms[0]",)
    assert passing.missing("_meta.subject") == ("transforms[0]",)


def test_a_path_is_written_into_the_literal_key_if_that_may_be_there():
    reduced = used(Passing(), keys=["a.b"], keeps=False)

    passing = used(reduced, "transforms[1]", writes=["a.b"])

    assert passing.missing("a.b") is None
    assert passing.missing("a") is None


def test_what_is_removed_is_missing_until_it_is_written_again():
    passing = used(keys("a", "b"), removes=["a"])
    assert passing.missing("a") == ("transforms[0]",)
    assert passing.missing("a.b") == ("transforms[0]",)
    assert passing.missing("b") is None

    passing = used(passing, "transforms[1]", writes=["a.b"])
    assert passing.missing("a.b") is None
    assert passing.missing("a.c") == ("transforms[0]",)


def test_removing_a_path_may_have_taken_the_literal_key_instead():
    assert used(Passing(), removes=["a.b"]).missing("a.b") is None
    assert used(keys("a", "a.b"), removes=["a.b"]).missing("a.b") is None


def test_removing_a_path_takes_what_is_below_where_there_is_no_literal_key():
    passing = used(keys("a"), removes=["a.b"])

    assert passing.missing("a.b") == ("transforms[0]",)
    assert passing.missing("a.b.c") == ("transforms[0]",)
    assert passing.missing("a") is None
    assert passing.missing("a.c") is None


def test_removing_what_is_not_there_blames_whoever_took_it_first():
    passing = used(used(Passing(), removes=["a"]), "transforms[1]", removes=["a", "a.b"])

    assert passing.missing("a") == ("transforms[0]",)
    assert passing.missing("a.b") == ("transforms[0]",)


def test_what_is_removed_and_written_in_one_go_is_there():
    assert used(Passing(), removes=["a"], writes=["a"]).missing("a") is None


def test_a_component_that_cannot_tell_makes_anything_possible():
    passing = keys("a").seen_by("transforms[0]").where("a", ValueRange(above=3))

    after = passing.after(FieldUse.unknown())

    assert after.missing("b") is None
    assert after.values == {}


def test_what_is_known_before_a_component_does_not_change_with_it():
    before = keys("a")

    used(before, writes=["b", "a.c"], removes=["a"])

    assert before.missing("b") == ("inputs[0]",)
    assert before.missing("a") is None


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("a", None),
        ("b", None),
        ("c", None),
        ("c.x", None),
        ("c.z", ("transforms[1]", "inputs[1]")),
        ("d", ("inputs[0]", "inputs[1]")),
    ],
)
def test_where_streams_meet_a_field_is_missing_if_none_has_it(path, who):
    one = used(keys("a"), "transforms[1]", writes=["c.x"])
    other = used(keys("b", by="inputs[1]"), writes=["c.y"])

    closed = used(one, "transforms[1]", writes=["a", "c.x"], keeps=False)
    met = merged([closed if path == "c.z" else one, other])

    assert met.missing(path) == who


def test_where_one_of_the_streams_may_have_anything_so_may_both():
    assert merged([keys("a"), Passing()]).missing("b") is None
    assert merged([keys("a"), used(Passing(), removes=["a"])]).missing("a") is None
    assert merged([used(Passing(), removes=["a"]), keys("b")]).missing("a") == (
        "transforms[0]",
        "inputs[0]",
    )


def test_where_streams_meet_the_larger_batches_count():
    assert merged([Passing(largest=1), Passing(largest=3)]).largest == 3
    assert merged([Passing(largest=1), Passing()]).largest is None


def test_where_streams_meet_what_is_stopped_does_not_count():
    met = merged([Passing(stopped="dry"), keys("a")])

    assert (met.stopped, met.missing("b")) == (None, ("inputs[0]",))
    assert merged([Passing(stopped="dry")]).stopped == "none of the inputs hands on anything"


def test_a_field_that_is_needed_and_surely_missing_stops_everything():
    passing = used(keys("a"), drops_without=["b", "a"])

    assert passing.stopped == "transforms[0] hands on nothing without 'b'"


def test_the_first_reason_stays():
    assert Passing().stop("dry").stop("closed").stopped == "dry"


def test_values_that_exclude_each_other_stop_everything():
    first = Passing().seen_by("transforms[0]").where("a", ValueRange(above=5))

    passing = first.seen_by("transforms[1]").where("a", ValueRange(below=3))

    assert first.stopped is None
    assert passing.stopped == "transforms[1] drops every message that transforms[0] hands on"


@pytest.mark.parametrize(
    "use",
    [
        FieldUse.of(writes=["a.b"]),
        FieldUse.of(writes=["a"]),
        FieldUse.of(writes=["a.b.c"]),
        FieldUse.of(removes=["a"]),
        FieldUse.of(keys=["a.b"]),
        FieldUse.of(keeps=False),
        FieldUse.unknown(),
    ],
)
def test_values_are_known_until_the_field_is_touched(use):
    passing = Passing().where("a.b", ValueRange(equal="x"))

    assert passing.after(use).where("a.b", ValueRange(equal="y")).stopped is None
    assert (
        passing.after(FieldUse.of(writes=["a.c", "b"])).where("a.b", ValueRange(equal="y")).stopped
    )


def test_who_hands_on_single_messages_is_remembered():
    passing = Passing().seen_by("transforms[0]").at_most(1)
    assert passing.cut_by == "transforms[0]"
    assert passing.seen_by("transforms[1]").at_most(1).cut_by == "transforms[0]"
    assert passing.at_most(5).cut_by is None
    assert Passing(largest=1).at_most(1).cut_by is None


@pytest.mark.parametrize(
    ("path", "is_touched"),
    [("a", True), ("a.b", True), ("a.b.c", True), ("a.c", False), ("ab", False), ("b", False)],
)
def test_a_path_is_touched_by_what_leads_to_it_or_through_it(path, is_touched):
    assert (path in Paths(["a.b"])) is is_touched


def test_very_long_paths_are_told_apart_only_so_far():
    long = ".".join("a" * 100_000)
    passing = used(keys("b"), writes=[long])

    assert passing.missing(long) is None
    assert passing.missing(long + ".b") is None
    assert used(passing, removes=[long]).missing(long) is None
    assert used(keys("b"), removes=[long]).missing(long) == ("inputs[0]",)


def test_what_is_told_apart_can_be_listed():
    passing = used(keys("a"), writes=["m.n"], removes=["a"])

    assert [*passing.fields.listed()] == ["m", "m.n"]


def test_more_fields_than_anybody_writes_are_no_longer_told_apart():
    many = keys(*(f"k{n}" for n in range(1000)))
    one_more = keys(*(f"k{n}" for n in range(1001)))

    assert many.missing("other") == ("inputs[0]",)
    assert used(many, writes=["k1.x"]).missing("other") == ("inputs[0]",)
    assert used(many, writes=["k1000"]).missing("other") is None
    assert merged([many, one_more]).missing("other") is None


def test_only_so_much_is_remembered_of_values():
    passing = Passing().where("a", ValueRange(above=5))
    for number in range(20):
        passing = passing.where("a", ValueRange(above=number)).where(
            f"b{number}", ValueRange(above=1)
        )

    assert passing.where("b19", ValueRange(below=1)).stopped
    assert passing.where("b0", ValueRange(below=1)).stopped is None
