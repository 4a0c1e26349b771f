"""A fused chain does what the same chain does unfused: batches, failures, warnings, settled debts."""

from copy import deepcopy

from hypothesis import example, given, settings
from hypothesis import strategies as st
from marshmallow import ValidationError
from reactivex.subject import Subject

from headrace.compiler.delivery import Acknowledgement, Delivery, Window
from headrace.compiler.lowering.chain import lower, plainly
from headrace.operators.aggregations import FUNCTIONS
from headrace.operators.casts import CASTS
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from headrace.operators.reducer import Reducer
from tests.doubles import StubContext

# Few keys, so that paths meet: the same field, one below the other, a literal key with a dot.
PATHS = ["a", "b", "c", "d", "a.b", "a.c", "b.a", "d.a", "d.b", "d.a.c", "a."]
paths = st.sampled_from(["a", "b", "c", "d", "d.a"]) | st.sampled_from(PATHS)
strings = st.sampled_from(
    ["", "x", "a", " 12 ", "1.5", "TRUE", "2026-03-01", "null", "[1]", '{"b": 1}', "1e999"]
)
integers = st.sampled_from([0, 1, -3, 80, 2**53 + 1, 10**310])
doubles = st.sampled_from([0.0, -0.0, 1.0, 0.5, 1.8, -80.25, 1.7e308, 5e-324])
numbers = integers | doubles


def one_of_type(type, **options):
    """Return a config object tagged by `type`; an option that is drawn as None is left out."""
    return st.fixed_dictionaries({"type": st.just(type)} | options).map(
        lambda made: {key.rstrip("_"): value for key, value in made.items() if value is not None}
    )


def sometimes(strategy):
    return st.none() | strategy


def weighted(*strategies):
    """Return one that draws from each as often as it is named."""
    return st.sampled_from(strategies).flatmap(lambda drawn: drawn)


literals = st.one_of(
    one_of_type("text", value=strings),
    one_of_type("number", value=numbers),
    one_of_type("boolean", value=st.booleans()),
    one_of_type("null"),
)
operands = one_of_type("field", field=paths) | one_of_type("value", value=numbers)
parts = one_of_type("field", field=paths) | one_of_type("value", value=strings)
operators = st.sampled_from(["add", "subtract", "multiply", "divide"])
defaults = sometimes(literals)
mappings = st.one_of(
    one_of_type("copy", from_=paths, as_=sometimes(paths), default=defaults),
    one_of_type("constant", value=literals, as_=paths),
    one_of_type(
        "coalesce", from_=st.lists(paths, min_size=2, max_size=3), as_=paths, default=defaults
    ),
    one_of_type(
        "cast",
        from_=paths,
        to=st.sampled_from([*CASTS]),
        as_=sometimes(paths),
        default=defaults,
    ),
    one_of_type("concat", parts=st.lists(parts, min_size=1, max_size=3), as_=paths),
    one_of_type("arithmetic", left=operands, operator=operators, right=operands, as_=paths),
    one_of_type("drop", from_=st.lists(paths, min_size=1, max_size=2)),
)


@st.composite
def maps(draw):
    """Draw a map: as many of a list of mappings as go together."""
    policy = draw(
        st.fixed_dictionaries(
            {
                "keep": st.sampled_from(["all", "mapped"]),
                "on_missing": st.sampled_from(["error", "omit", "null"]),
            }
        )
    )
    made = Map(mappings=())
    for mapping in draw(st.lists(mappings, min_size=1, max_size=4)):
        document = {**policy, "mappings": [*(each.dump() for each in made.mappings), mapping]}
        try:
            made = Map.load(document)
        except ValidationError:
            continue
    return made


def condition(fields, value, *operators):
    return st.fixed_dictionaries(
        {
            "field": weighted(st.sampled_from(fields), st.sampled_from(fields), paths),
            "operator": st.sampled_from(operators),
            "value": value,
        }
    )


# Mostly such as let something through.
numeric = condition(
    ["a", "c"], weighted(st.just(-81), numbers), "greater_than", "less_than", "equal_to"
)
string = condition(["b"], weighted(st.just(""), strings), "contains", "equal_to")
filters = (numeric.map(lambda c: {"Numeric": c}) | string.map(lambda c: {"String": c})).map(
    Filter.load
)
some_maps = maps().filter(lambda made: made.mappings)
chains = st.lists(weighted(some_maps, some_maps, filters), min_size=1, max_size=4)


@st.composite
def reducers(draw):
    """Draw a reducer whose results have the names that everything else here looks for."""
    group_by = draw(st.lists(weighted(st.just("b"), paths), max_size=2, unique=True))
    free = [name for name in "acdb" if name not in group_by]
    functions = draw(st.lists(st.sampled_from([*FUNCTIONS]), min_size=1, max_size=len(free)))
    aggregations = [
        {"function": function, "field": draw(weighted(st.just("a"), paths)), "as": name}
        for function, name in zip(functions, free, strict=False)
    ]
    on_missing = draw(st.sampled_from(["error", "skip"]))
    return Reducer.load(
        {"aggregations": aggregations, "group_by": group_by, "on_missing": on_missing}
    )


COUNT = Reducer.load({"aggregations": [{"function": "count", "as": "a"}]})
gathering = st.tuples(chains, reducers() | st.just(COUNT), st.just([]) | chains).map(
    lambda parts: [*parts[0], parts[1], *parts[2]]
)

scalars = st.none() | st.booleans() | numbers | strings
values = scalars | st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "c", ""]), inner, max_size=2)
    ),
    max_leaves=4,
)
alike = st.fixed_dictionaries(
    {
        "a": weighted(numbers, numbers, numbers, st.booleans()),
        "b": strings,
        "d": st.fixed_dictionaries({"a": numbers | strings}),
    },
    optional={"c": numbers | values, "d.a": values},
)
other = st.dictionaries(st.sampled_from(PATHS), values, max_size=4) | values


def batches_of(messages):
    return st.lists(st.lists(messages, min_size=1, max_size=4), min_size=1, max_size=3)


arrivals = weighted(*map(batches_of, [alike, alike, alike, alike | other]))


class Stage(StubContext):
    """The place of one transform: writes what it says into a log it shares with the others."""

    def __init__(self, index, log):
        super().__init__(place=f"transforms[{index}]")
        self.index = index
        self.log = log

    def warn_once(self, text):
        if not self.has_warned(text):
            self.log.append(("warned", self.index, text))
        super().warn_once(text)

    def report(self, cause):
        self.log.append(("failed", self.index, f"{type(cause).__name__}: {cause}"))


def run(transforms, batches, lowering):
    """Return everything that can be told of a run, in order."""
    log, window, refusals = [], Window(), []
    stages = [(each, Stage(index, log)) for index, each in enumerate(transforms)]
    source = Subject()

    def take(delivery):
        log.append(("handed on", exact(delivery.batch)))
        delivery.done()

    source.pipe(*lowering(stages, refusals)).subscribe(
        take, on_completed=lambda: log.append(("completed",))
    )
    for number, batch in enumerate(batches):
        window.take()
        settled = Acknowledgement(lambda number=number: log.append(("settled", number)))
        source.on_next(Delivery(batch, window, settled))
    source.on_completed()
    return [*log, ("owed", window.used), ("refused", refusals)]


def exact(value):
    """Return a value so that only the same is equal: 1, 1.0 and True differ, as do -0.0 and 0.0."""
    if isinstance(value, dict):
        return [(key, exact(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return [exact(inner) for inner in value]
    return type(value), value.hex() if isinstance(value, float) else value


HEAT = Filter.load({"Numeric": {"field": "a", "operator": "greater_than", "value": 80}})


def mapped(*mappings, **policy):
    return Map.load({"mappings": [*mappings], **policy})


COPY = {"type": "copy", "from": "a", "as": "b"}
BELOW = {"type": "copy", "from": "c", "as": "a.b"}
INTO = {"type": "copy", "from": "b", "as": "a"}


@settings(max_examples=300, deadline=None)
@given(chains, arrivals)
# The second stage would warn of the first message, were it not for the first stage and the second.
@example([mapped(COPY), HEAT], [[{"a": "x"}, {}], [{"a": "x"}], [{"a": 81}, {"a": True}]])
# `a` is a scalar by now, but `a.b` goes where the literal key is.
@example([mapped(INTO, BELOW)], [[{"a.b": 1, "b": 5, "c": 2}]])
@example([mapped(INTO, BELOW, keep="mapped")], [[{"a.b": 1, "b": 5, "c": 2}]])
def test_a_fused_chain_does_what_the_unfused_one_does(transforms, batches):
    same_either_way(transforms, batches)


@settings(max_examples=300, deadline=None)
@given(gathering, arrivals)
# Nothing is left for the reducer; what is left of the batch is less than came in.
@example([HEAT, COUNT], [[{"a": 1}, {"a": 2}]])
@example([HEAT, COUNT], [[{"a": 1}, {"a": 81}]])
def test_so_does_one_that_ends_in_what_gathers_messages(transforms, batches):
    same_either_way(transforms, batches)


def same_either_way(transforms, batches):
    untouched = deepcopy(batches)

    fused = run(transforms, batches, lower)
    plain = run(transforms, batches, plainly)

    assert fused == plain
    assert exact(batches) == exact(untouched)
