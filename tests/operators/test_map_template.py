"""The mapping `template`: what it writes, what it is refused for, what it fails on."""

from functools import partial
from time import thread_time

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.lowering.chain import fuse
from headrace.operators.map import Map
from tests.doubles import refusals
from tests.operators.mappings import a_map, literal, template


@pytest.mark.parametrize(
    ("mapping", "message", "written"),
    [
        (template("{m} is at {t} °C"), {"m": "press", "t": 21.5}, "press is at 21.5 °C"),
        (template("{a.b}/{a.b}"), {"a": {"b": 1}}, "1/1"),
        (template("{a.b}"), {"a.b": "literal", "a": {"b": 1}}, "literal"),
        (template("{{{a}}}"), {"a": True}, "{true}"),
        (template("it's {a}\\n\n"), {"a": "{x}"}, "it's {x}\\n\n"),
        (template('{{"a": "{a}"}}', escape="json"), {"a": 'x"y'}, '{"a": "x\\"y"}'),
        (template("/?a={a}&b={b}", escape="url"), {"a": "x y", "b": 1e16}, "/?a=x%20y&b=1e16"),
    ],
)
def test_it_writes_the_text_with_its_fields(mapped, mapping, message, written):
    assert mapped(a_map(mapping, keep="mapped"), message) == {"out": written}


@pytest.mark.parametrize("escape", ["none", "json", "url"])
@pytest.mark.parametrize("message", [{"a": 1}, {"a": 1, "b": None}, {}, {"b": "x"}])
def test_one_missing_field_makes_the_text_missing(mapped, message, escape):
    mapping = template("{a} {b}", escape=escape)

    assert mapped(a_map(mapping, on_missing="omit"), message) == message
    assert mapped(a_map(mapping, on_missing="null"), message) == message | {"out": None}
    assert "missing or null" in mapped(a_map(mapping), message)


@pytest.mark.parametrize("escape", ["none", "json", "url"])
@pytest.mark.parametrize("policy", ["error", "omit", "null"])
def test_a_list_or_an_object_fails_the_batch_also_where_another_is_missing(mapped, policy, escape):
    document = a_map(template("{a} {b}", escape=escape), on_missing=policy)
    said = "mapping 0 ('template'): field 'a': cannot read {} as text: expected a string, number or boolean"

    assert mapped(document, {"a": [1]}) == said.format("a list")
    assert mapped(document, {"a": {}, "b": 1}) == said.format("an object")


def test_too_long_a_text_fails_the_batch(mapped):
    doubled = [template(f"{{t{n}}}{{t{n}}}", f"t{n + 1}") for n in range(60)]

    assert mapped(a_map(*doubled), {"t0": "x" * 1024 * 1024}) == (
        "mapping 4 ('template'): the result is longer than 16,777,216 characters"
    )


def test_too_long_a_field_to_escape_fails_the_batch(mapped):
    document = a_map(template("{a}", escape="url"))

    assert len(mapped(document, {"a": "x" * 65_536})["out"]) == 65_536
    assert mapped(document, {"a": "x" * 65_537}) == (
        "mapping 0 ('template'): the fields to escape are longer than 65,536 characters together"
    )


def test_many_fields_are_compiled_within_half_a_second(ctx):
    transform = Map.load(a_map(*(template("{x}" * 100, f"t{n}") for n in range(300))))

    began = thread_time()
    loop = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop

    assert thread_time() - began < 0.5
    assert loop([{"x": 7}]) == [{"x": 7} | {f"t{n}": "7" * 100 for n in range(300)}]


@pytest.mark.parametrize(
    "document",
    [
        a_map(template("{x} {y}"), template("{out}!", "two")),
        a_map(template("{x} {y}", escape="json"), on_missing="omit", keep="mapped"),
        a_map(template("{y}", "a.b", escape="url"), on_missing="null"),
    ],
)
@pytest.mark.parametrize("message", [{"x": "m", "y": 21.5}, {"x": -0.0, "y": True}])
def test_the_generated_form_needs_no_help_with_ordinary_messages(ctx, document, message):
    transform = Map.load(document)
    loop = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop

    assert [loop([message])] == transform.step(ctx)([message])


@pytest.mark.parametrize(
    ("mapping", "refusal"),
    [
        ({"type": "template", "as": "b"}, "mappings.0.template: this key is required"),
        (
            {"type": "template", "template": "{a}"},
            "mappings.0.as: this key is required",
        ),
        (
            template("{a"),
            "mappings.0.template: a '{' is not closed: character 1",
        ),
        (
            template("{a}", escape="html"),
            'mappings.0.escape: expected one of none, json, url, found "html"',
        ),
        (
            template("{a}", default=literal("x")),
            "mappings.0.default: unknown key 'default'",
        ),
    ],
)
def test_what_cannot_be_is_refused(mapping, refusal):
    assert refusals(Map, a_map(mapping)) == [refusal.replace("mappings.0", "mappings[0]")]


def test_nothing_can_be_written_below_a_text():
    assert refusals(Map, a_map(template("{a}", "b"), template("{a}", "b.c"))) != []


def test_it_reads_the_fields_that_stand_in_braces_and_demands_them():
    transform = Map.load(a_map(template("{a} {b.c} {{d}} {a}")))

    assert transform.field_use() == FieldUse.of(reads=["a", "b.c"], writes=["out"])
    assert [(each.path, each.place) for each in transform.demands()] == [
        ("a", ("mappings", 0, "template")),
        ("b.c", ("mappings", 0, "template")),
    ]
