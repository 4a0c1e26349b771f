"""Chains of transforms for dry runs, generated."""

from hypothesis import strategies as st

names = st.sampled_from(["a", "b", "m", "n"])
numbers = st.sampled_from([0, 1, 2, 3.5])
words = st.sampled_from(["", "x", "auto"])
values = numbers | words | st.none() | st.booleans()


def kind(type, **options):
    return st.fixed_dictionaries({"type": st.just(type)} | options)


conditions = st.one_of(
    kind(
        "numeric",
        field=names,
        operator=st.sampled_from(["greater_than", "less_than"]),
        value=numbers,
    ),
    kind("string", field=names, operator=st.sampled_from(["equal_to", "contains"]), value=words),
)


def as_filter(condition):
    options = {key: value for key, value in condition.items() if key != "type"}
    return {"type": "filter", condition["type"].capitalize(): options}


def as_map(mapping, on_missing):
    return {"type": "map", "mappings": [mapping], "on_missing": on_missing}


maps = st.builds(
    as_map,
    st.one_of(
        st.builds(lambda f, t: {"type": "copy", "from": f, "as": t}, names, names),
        st.builds(lambda f, t: {"type": "cast", "from": f, "to": t}, names, st.just("text")),
        st.builds(lambda f: {"type": "drop", "from": [f]}, names),
    ),
    st.sampled_from(["error", "omit", "null"]),
)
aggregations = st.lists(
    st.builds(
        lambda f, field: {"function": f, "field": field},
        st.sampled_from(["count", "first", "collect", "last"]),
        names,
    ),
    min_size=1,
    max_size=2,
).map(lambda made: [{**each, "as": "nm"[at]} for at, each in enumerate(made)])
reducers = kind(
    "reducer",
    group_by=st.sampled_from([[], ["a"], ["b", "a"]]),
    aggregations=aggregations,
    on_missing=st.sampled_from(["skip", "skip", "error"]),
)
gates = st.fixed_dictionaries(
    {"conditions": st.lists(conditions, min_size=1, max_size=1)},
    optional={"key": st.sampled_from(["", "x", "1"])},
)
buffers = st.one_of(
    kind("buffer", size=st.integers(1, 4)),
    kind("buffer", size=st.integers(1, 4), seconds=st.integers(1, 5)),
    kind("buffer", max_messages=st.integers(1, 6), seconds=st.integers(1, 5)),
    kind("buffer", size=st.integers(1, 4), until=gates),
    kind("buffer", max_messages=st.integers(1, 6), until=gates),
)
scripts = st.sampled_from(
    [
        ("message", "if msg.n != 1 { emit(msg); }"),
        ("message", "emit(msg); emit(#{a: msg.b});"),
        ("message", "remember(`x`, #{m: msg.m, n: 1}); emit(msg);"),
        ("message", "if msg.a == 2 { throw `two`; } emit(recall(`x`) ?? msg);"),
        ("batch", "emit(batch); emit([#{n: batch.len()}]);"),
    ]
).map(
    lambda made: {
        "type": "script",
        "scope": made[0],
        "source": {"type": "inline", "code": made[1]},
    }
)
stages = st.one_of(
    conditions.map(as_filter),
    maps,
    reducers,
    kind("splitter", out_size=st.integers(1, 3)),
    buffers,
    buffers,
    kind(
        "remember",
        remember=names.map(lambda name: [{"field": name, "as": name}]),
        when=st.lists(conditions, max_size=1),
    ),
    kind(
        "recall",
        recall=st.lists(names, min_size=1, max_size=2, unique=True),
        on_missing=st.sampled_from(["skip", "null", "error"]),
    ),
    scripts,
)
chains = st.lists(stages, min_size=1, max_size=5)
messages = st.lists(
    st.dictionaries(names, values, min_size=2, max_size=4) | st.just("text"),
    min_size=1,
    max_size=8,
)
states = st.sampled_from([{"bucket": "b"}, {"bucket": "b", "key": "m"}])
seeds = st.dictionaries(
    st.sampled_from(["", "x", "1"]), st.dictionaries(names, values, min_size=1), max_size=2
)
