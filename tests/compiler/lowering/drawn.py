"""Chains of transforms and messages for them, generated."""

from importlib.util import find_spec

from hypothesis import strategies as st
from marshmallow import ValidationError

from headrace.compiler.casts import CASTS
from headrace.operators.aggregations import FUNCTIONS
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from headrace.operators.parse import Parse
from headrace.operators.recall import Recall
from headrace.operators.reducer import Reducer
from headrace.operators.remember import Remember

# Few keys, so that paths meet: the same field, one below the other, a literal key with a dot.
PATHS = ["a", "b", "c", "d", "a.b", "a.c", "b.a", "d.a", "d.b", "d.a.c", "a."]


paths = st.sampled_from(["a", "b", "c", "d", "d.a"]) | st.sampled_from(PATHS)
strings = st.sampled_from(
    [
        *("", "x", "a", " 12 ", "1.5", "TRUE", "null", "[1]", '{"b": 1}', "1e999"),
        *(
            "2026-03-01",
            "2026-03-29 02:30:00",
            "2026-10-25T00:30:00.5Z",
            "0001-01-01T00:00:00+01:00",
        ),
    ]
)
integers = st.sampled_from([0, 1, -3, 80, 2**53 + 1, 10**310])
doubles = st.sampled_from([0.285, 2.5, -0.25, 0.0, -0.0, 1.0, 0.5, 1.8, -80.25, 1.7e308, 5e-324])
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


def written_template(pieces):
    """Return a template of fields and texts, with one field at least."""
    fields = [each if "{" in each else f"{{{each}}}" for each in [*pieces, "a"]]
    return "".join(each.replace("}x'{", "}}x'{{ ") for each in fields)


literals = st.one_of(
    one_of_type("text", value=strings),
    one_of_type("number", value=numbers),
    one_of_type("boolean", value=st.booleans()),
    one_of_type("null"),
)
comparisons = st.sampled_from(["greater_than", "at_most", "equal_to", "not_equal_to"])
regexes = st.sampled_from(["", "^a", "1", r"\d$", "(?<x>.)(?<y>.)?"])
single_conditions = st.one_of(
    one_of_type("exists", field=paths),
    one_of_type("boolean", field=paths, value=st.booleans()),
    one_of_type("numeric", field=paths, operator=comparisons, value=numbers),
    one_of_type("numeric", field=paths, operator=comparisons, other=paths),
    one_of_type(
        "string",
        field=paths,
        operator=st.sampled_from(["contains", "not_equal_to", "starts_with"]),
        value=strings,
        ignore_case=st.booleans(),
    ),
    one_of_type(
        "one_of", field=paths, values=st.lists(numbers | strings | st.booleans(), min_size=1)
    ),
    one_of_type("length", field=paths, operator=comparisons, value=st.integers(0, 2)),
    # Without the script engine there are no patterns.
    *([one_of_type("matches", field=paths, regex=regexes)] if find_spec("rhai") else []),
)
conditions = st.recursive(
    single_conditions,
    lambda inner: st.one_of(
        *(
            one_of_type(word, conditions=st.lists(inner, min_size=1, max_size=3))
            for word in ("any", "all", "not")
        )
    ),
    max_leaves=3,
)
# Mostly none: what is drawn should still do something.
whens = st.sampled_from([0, 0, 1]).flatmap(
    lambda count: st.lists(conditions, min_size=count, max_size=2 * count)
)
operands = one_of_type("field", field=paths) | one_of_type("value", value=numbers)
parts = one_of_type("field", field=paths) | one_of_type("value", value=strings)
operators = st.sampled_from(["add", "subtract", "multiply", "divide", "modulo", "min", "max"])
defaults = sometimes(literals)
hash_forms = st.sampled_from(["hex", "base64", "uuid"])


def words(*words):
    return st.lists(st.sampled_from(words), min_size=1, max_size=3)


replacing = {
    "with_": st.sampled_from(["", "bb", "$$"]),
    "first": st.booleans(),
    "as_": sometimes(paths),
    "default": defaults,
}
zones = st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "UTC"])
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
    one_of_type(
        "cast", from_=paths, to=st.just("float"), decimal=st.just(","), as_=sometimes(paths)
    ),
    one_of_type("concat", parts=st.lists(parts, min_size=1, max_size=3), as_=paths),
    one_of_type(
        "template",
        template=st.lists(paths | st.just("}x'{"), min_size=1, max_size=3).map(written_template),
        escape=st.sampled_from(["none", "none", "json", "url"]),
        as_=paths,
    ),
    one_of_type("arithmetic", left=operands, operator=operators, right=operands, as_=paths),
    one_of_type("drop", from_=st.lists(paths, min_size=1, max_size=2)),
    one_of_type(
        "rename", fields=st.dictionaries(weighted(st.sampled_from("abc"), paths), paths, min_size=1)
    ),
    one_of_type("drop_nulls", nested=st.booleans()),
    one_of_type(
        "choose",
        cases=st.lists(
            st.fixed_dictionaries(
                {
                    "when": st.lists(conditions, min_size=1, max_size=2),
                    "value": literals | one_of_type("field", field=paths),
                }
            ),
            min_size=1,
            max_size=3,
        ),
        as_=paths,
        default=defaults,
    ),
    st.one_of(
        one_of_type("split", by=st.sampled_from(["1", " ", "x"]), max=st.sampled_from([1, 2])),
        one_of_type("join", with_=strings, max=st.sampled_from([1, 5])),
        one_of_type("text", apply=words("trim", "lower", "upper")),
        one_of_type("number", apply=words("round", "floor", "ceil"), digits=st.integers(0, 3)),
        one_of_type("number", apply=words("abs", "round")),
        one_of_type("hash", algorithm=st.sampled_from(["sha256", "sha512"]), to=hash_forms),
        one_of_type("hash", algorithm=st.just("hmac_sha256"), key=st.just("k" * 16), to=hash_forms),
        one_of_type("mask", keep_start=st.integers(0, 2), keep_end=st.integers(0, 2)),
        one_of_type("mask", keep_start=st.integers(0, 2), keep_from=st.sampled_from(["1", "x"])),
    ).flatmap(
        lambda made: st.fixed_dictionaries(
            {**{key: st.just(value) for key, value in made.items()}, "from": paths},
            optional={"as": paths, "default": literals},
        )
    ),
    one_of_type("replace", from_=paths, text=st.sampled_from(["1", "a"]), **replacing),
    *(
        [one_of_type("replace", from_=paths, regex=regexes, **replacing)]
        if find_spec("rhai")
        else []
    ),
    one_of_type(
        "time",
        from_=paths,
        format=sometimes(st.sampled_from(["millis", "%Y-%m-%d %H:%M:%S", ["%s", "%Y-%m-%d"]])),
        zone=sometimes(zones),
        at_shift=st.sampled_from(["before", "after", "refuse"]),
        plus=sometimes(operands),
        to_zone=sometimes(zones),
        truncate=sometimes(st.sampled_from(["second", "hour", "week"])),
        to=st.sampled_from(["timestamp", "date", "seconds", "nanos"]),
        to_format=sometimes(st.just("%d.%m.%Y")),
        as_=sometimes(paths),
        default=defaults,
    ),
    one_of_type(
        "elapsed",
        from_=paths,
        until=paths,
        unit=st.sampled_from(["seconds", "millis"]),
        as_=paths,
    ),
    one_of_type("now", as_=paths),
)
mappings = st.builds(
    lambda mapping, when: mapping | ({"when": when} if when else {}), mappings, whens
)

on_errors = st.sampled_from(["fail", "skip"])


@st.composite
def maps(draw):
    """Draw a map: as many of a list of mappings as go together."""
    policy = draw(
        st.fixed_dictionaries(
            {
                "keep": st.sampled_from(["all", "mapped"]),
                "on_missing": st.sampled_from(["error", "omit", "null"]),
                "on_error": on_errors,
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


splits = st.builds(
    lambda by, into, rest: {"split": {"by": by, "into": into, "rest": rest}},
    st.sampled_from([".", "1", " "]),
    st.sampled_from([["a"], ["a", "b"], [None, "c"], ["b", "a.b", None]]),
    st.booleans(),
)
csv_lines = st.sampled_from(["a", "c", "a.b"]).map(lambda name: {"csv": {"columns": [name]}})
# One that fuses, and two that do not.
patterns = st.sampled_from(
    [
        {"regex": r"^(?<a>[0-9]+)(?:\.(?<b>[0-9]))?$"},
        {"regex": r"(?<c>[0-9x])"},
        {"regex": "(?<a.b>.*)(?<a>[a-z1]+)"},
    ]
    if find_spec("rhai")
    else [{"preset": "common"}]
)
with_names = st.sampled_from([{"pairs": {"within": "1"}}, {"preset": "logfmt"}])


@st.composite
def parses(draw):
    """Draw a parse that takes some of the strings apart."""
    form = draw(weighted(splits, splits, csv_lines, with_names, patterns))
    policies = st.sampled_from(["error", "skip", "keep", "keep"])
    document = {
        "from": draw(weighted(st.just("b"), st.just("b"), paths)),
        "on_missing": draw(policies),
        "on_mismatch": draw(policies),
        "keep": draw(st.sampled_from(["all", "all", "parsed"])),
        "max_length": draw(st.sampled_from([3, 65_536])),
        "on_error": draw(on_errors),
        **form,
    }
    if form.keys() & {"pairs", "preset"} or draw(st.booleans()):
        document["as"] = draw(paths)
    if draw(st.booleans()):
        document["nulls"] = draw(st.lists(strings, max_size=2))
    names = [*(Parse.load(document).form.names or "a")]
    words = st.sampled_from([*CASTS])
    if form != {"preset": "common"}:
        document["types"] = draw(st.dictionaries(st.sampled_from(names), words, max_size=2))
    return Parse.load(document)


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
filters = (
    numeric.map(lambda c: {"Numeric": c})
    | string.map(lambda c: {"String": c})
    | st.lists(conditions, min_size=1, max_size=2).map(lambda when: {"when": when})
).map(Filter.load)
some_maps = maps().filter(lambda made: made.mappings)
chains = st.lists(weighted(some_maps, some_maps, filters, parses()), min_size=1, max_size=4)


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
conditions = numeric.map(lambda c: {"type": "numeric", **c}) | string.map(
    lambda c: {"type": "string", **c}
)
names = st.lists(st.sampled_from(["a", "b", "c", "a.b", "d"]), min_size=1, max_size=3, unique=True)
remembers = st.builds(
    lambda names, fields, when: Remember.load(
        {
            "remember": [{"field": f, "as": n} for n, f in zip(names, fields, strict=False)],
            "when": when,
        }
    ),
    names,
    st.lists(weighted(st.sampled_from("abd"), paths), min_size=3, max_size=3),
    weighted(st.just([]), st.lists(conditions, max_size=2)),
)
recalls = st.builds(
    lambda names, policy, on_error: Recall.load(
        {"recall": names, "on_missing": policy, "on_error": on_error}
    ),
    names,
    st.sampled_from(["skip", "null", "null", "error"]),
    on_errors,
)
keeping = st.lists(
    weighted(remembers, recalls, some_maps, filters, parses()), min_size=1, max_size=5
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
