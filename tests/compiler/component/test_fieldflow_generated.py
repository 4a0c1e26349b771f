"""What components say about fields, held against what they do with generated messages."""

from hypothesis import assume, given
from hypothesis import strategies as st
from marshmallow import ValidationError

from headrace.compiler.component.fieldflow import ANYTHING, Passing, Paths, Shape
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.errors import BatchFailed
from headrace.operators.explode import Explode
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
    lambda inner: (
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=3) | st.lists(inner, max_size=2)
    ),
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
    st.fixed_dictionaries(
        {
            "type": st.just("rename"),
            "fields": st.dictionaries(paths, paths, min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"type": st.just("drop_nulls"), "nested": st.booleans()}),
    st.fixed_dictionaries(
        {"type": st.just("text"), "from": paths, "apply": st.just(["trim"])}, optional={"as": paths}
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("choose"),
            "as": paths,
            "cases": st.lists(
                st.fixed_dictionaries(
                    {
                        "when": st.tuples(
                            st.fixed_dictionaries({"type": st.just("exists"), "field": paths})
                        ).map(list),
                        "value": st.fixed_dictionaries({"type": st.just("field"), "field": paths}),
                    }
                ),
                min_size=1,
                max_size=2,
            ),
        }
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
explodes = st.builds(
    lambda path, options: Explode.load({"from": path, **options}),
    paths,
    st.sampled_from(
        [{"keep": {"a": "b", "k": "a.b"}}, {"index_as": "c"}, {"as": "c"}, {"as": "b.a"}]
    ),
)
components = st.one_of(maps, reducers, filters, splitters, explodes)


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
    fields = Shape.of(names, "inputs[0]") if is_closed else ANYTHING
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
