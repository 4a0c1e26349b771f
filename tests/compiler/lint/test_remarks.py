"""Remarks: warnings about what a config may say and probably does not mean."""

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.config.program import load_pipeline, load_program
from headrace.compiler.text.documents import read
from tests.compiler.catalogued import plain, written

CATALOGUE = scan("headrace.operators", "headrace.connectors")

DUMMY = "{type: dummy, duration: 1}"
HTTP = "{type: http}"
MEANS = "{type: reducer, aggregations: [{function: avg, field: value, as: mean}]}"


def diagnosed(text):
    loaded, diagnostics = load_program(written(text), CATALOGUE)
    assert loaded is not None, plain(diagnostics)
    return diagnostics


def remarked(text):
    """Return what is remarked on a config that loads, line by line."""
    return [line.replace(": warning: ", ": ") for line in plain(diagnosed(text))]


def chain(*transforms, inputs=(HTTP,), outputs=("{type: stdout}",), id="a"):
    """Return a pipeline, each component on a line of its own: inputs from line 4."""

    def block(name, components):
        return [f"  {name}:", *(f"    - {each}" for each in components)] if components else []

    lines = ["", f"- id: {id}", *block("inputs", inputs), *block("transforms", transforms)]
    return "\n".join([*lines, *block("outputs", outputs)])


def filtering(field, operator, value):
    variant = "String" if isinstance(value, str) else "Numeric"
    return f"{{type: filter, {variant}: {{field: {field}, operator: {operator}, value: {value}}}}}"


def copying(from_, *, keep="all"):
    return f"{{type: map, keep: {keep}, mappings: [{{type: copy, from: {from_}}}]}}"


BUFFER = "{type: buffer, size: 10}"


def test_a_field_that_an_earlier_transform_does_not_hand_on():
    assert remarked(chain(BUFFER, MEANS, copying("sensor_id"))) == [
        "8:60: pipelines[0].transforms[2]:"
        " reads 'sensor_id', which transforms[1] (reducer, line 7) does not hand on"
    ]


def test_it_says_what_is_handed_on_and_what_may_be_meant():
    diagnostic, *_ = diagnosed(chain(BUFFER, MEANS, filtering("maen", "less_than", 3)))

    assert (diagnostic.code, diagnostic.found, diagnostic.expected, diagnostic.suggestion) == (
        "not-handed-on",
        '"maen"',
        "one of mean",
        "did you mean 'mean'?",
    )


def test_a_field_that_no_input_has():
    assert remarked(chain(copying("temp"), inputs=[DUMMY])) == [
        "6:60: pipelines[0].transforms[0]:"
        " reads 'temp', which inputs[0] (dummy, line 4) does not hand on"
    ]
    assert remarked(chain(copying("temp"), inputs=[DUMMY, DUMMY])) == [
        "7:60: pipelines[0].transforms[0]: reads 'temp',"
        " which inputs[0] (dummy, line 4) and inputs[1] (dummy, line 5) do not hand on"
    ]
    assert remarked(chain(copying("temp"), inputs=[DUMMY, HTTP])) == []


def test_a_field_that_was_dropped_or_not_kept():
    drop = "{type: map, mappings: [{type: drop, from: [unit]}]}"

    assert remarked(chain(drop, copying("unit"), copying("temp", keep="mapped"), copying("t"))) == [
        "7:60: pipelines[0].transforms[1]:"
        " reads 'unit', which transforms[0] (map, line 6) does not hand on",
        "9:60: pipelines[0].transforms[3]:"
        " reads 't', which transforms[2] (map, line 8) does not hand on",
    ]


@pytest.mark.parametrize(
    ("output", "column"),
    [
        (
            "{type: http, url: 'http://collector/in', body: message, template: '${value} {m.t}'}",
            73,
        ),
        ("{type: file, connection: disk, path: a, format: text, template: '{m.t}: {m.t}'}", 71),
        ("{type: file, connection: disk, path: a, format: csv, csv: {columns: [value, m.t]}}", 83),
    ],
)
def test_a_field_of_a_template_or_a_column_that_no_input_has(output, column):
    document = chain(inputs=[DUMMY], outputs=[output])

    assert remarked(document) == [
        f"6:{column}: pipelines[0].outputs[0]:"
        " reads 'm.t', which inputs[0] (dummy, line 4) does not hand on"
    ]
    assert remarked(document.replace("m.t", "value").replace("[value, value]", "[value]")) == []


def test_what_a_mapping_wrote_before_is_there():
    mapping = (
        "{type: map, mappings: [{type: copy, from: value, as: m.n},"
        " {type: copy, from: m, as: b}, {type: cast, from: b.c, to: text, as: d}]}"
    )

    assert remarked(chain(mapping, inputs=[DUMMY])) == []


def test_metadata_is_known_key_by_key():
    merge = "{type: dummy, duration: 1, envelope: {type: merge}}"
    wrap = "{type: dummy, duration: 1, envelope: {type: wrap, payload: p}}"

    assert remarked(chain(copying("_meta.input"), copying("value"), inputs=[merge])) == []
    assert remarked(chain(copying("_meta.subject"), inputs=[merge])) == [
        "6:60: pipelines[0].transforms[0]:"
        " reads '_meta.subject', which inputs[0] (dummy, line 4) does not hand on"
    ]
    assert remarked(chain(copying("p.value"), copying("_meta.input"), inputs=[wrap])) == []
    assert remarked(chain(copying("value"), copying("p.temp"), inputs=[wrap])) == [
        "6:60: pipelines[0].transforms[0]:"
        " reads 'value', which inputs[0] (dummy, line 4) does not hand on",
        "7:60: pipelines[0].transforms[1]:"
        " reads 'p.temp', which inputs[0] (dummy, line 4) does not hand on",
    ]


def test_a_literal_group_field_leads_to_itself_only():
    grouped = "{type: reducer, group_by: [_meta.input], aggregations: [{function: count, as: n}]}"

    assert remarked(chain(grouped, copying("_meta.input"))) == []
    assert remarked(chain(grouped, copying("_meta.pipeline"))) == [
        "7:60: pipelines[0].transforms[1]:"
        " reads '_meta.pipeline', which transforms[0] (reducer, line 6) does not hand on"
    ]


def test_a_transform_that_cannot_tell_hides_what_was_there():
    asking = "{type: http, url: 'http://localhost/', verb: POST}"

    assert remarked(chain(asking, copying("temp"), inputs=[DUMMY])) == []


def test_a_reader_knows_what_its_upstream_hands_on():
    reader = chain(
        copying("mean"), copying("value"), inputs=["{type: pipeline, upstream: a}"], id="b"
    )

    assert remarked(reader + chain(BUFFER, MEANS)) == [
        "7:60: pipelines[0].transforms[1]:"
        " reads 'value', which inputs[0] (pipeline, line 4) does not hand on"
    ]


def test_metadata_of_an_upstream_stays_behind_an_envelope():
    reading = "{type: pipeline, upstream: a, envelope: {type: merge}}"
    upstream = chain(inputs=["{type: dummy, duration: 1, envelope: {type: merge, meta: m}}"])
    both = chain(inputs=["{type: dummy, duration: 1, envelope: {type: merge}}"])

    assert remarked(
        upstream + chain(copying("_meta.x"), copying("m.input"), inputs=[reading], id="b")
    ) == [
        "11:60: pipelines[1].transforms[0]:"
        " reads '_meta.x', which inputs[0] (pipeline, line 9) does not hand on"
    ]
    told = remarked(
        both
        + chain(
            copying("_meta.received_at"),
            copying("_meta.upstream"),
            copying("_meta.x"),
            inputs=[reading],
            id="b",
        )
    )
    assert told == [
        "13:60: pipelines[1].transforms[2]:"
        " reads '_meta.x', which inputs[0] (pipeline, line 9) does not hand on"
    ]


def test_a_posted_pipeline_knows_nothing_of_what_runs():
    text = (
        '{"inputs": [{"type": "pipeline", "upstream": "a"}],'
        ' "transforms": [{"type": "splitter", "out_size": 2}]}'
    )

    assert load_pipeline(read(text, None, "json"), CATALOGUE, running=["a"])[1] == []


def test_a_posted_pipeline_is_remarked_on():
    text = (
        '{"inputs": [{"type": "dummy", "duration": 1}],\n'
        '"transforms": [{"type": "splitter", "out_size": 2}],\n'
        '"outputs": [{"type": "stdout"}]}'
    )

    config, diagnostics = load_pipeline(read(text, None, "json"), CATALOGUE)

    assert config is not None
    assert plain(diagnostics) == [
        "3:13: outputs[0]: warning: no message ever comes here: transforms[0] (splitter, line 2)"
        " needs 2 messages in a batch, and at most 1 come in one"
    ]


def test_a_reducer_with_nothing_that_batches_before_it():
    assert remarked(chain(MEANS, inputs=[DUMMY])) == [
        "6:7: pipelines[0].transforms[0]:"
        " this reducer sees one message at a time: nothing before it batches"
    ]


@pytest.mark.parametrize(
    "inputs",
    [
        [HTTP],
        [DUMMY, HTTP],
        ["{type: dummy, duration: 1, buffer: {type: static, size: 5}}"],
        ["{type: dummy, duration: 1, buffer: {type: tumbling, window_seconds: 5}}"],
        ["{type: pipeline, upstream: up}"],
    ],
)
def test_inputs_that_batch(inputs):
    up = chain(inputs=[HTTP], id="up")

    assert remarked(up + chain(MEANS, inputs=inputs)) == []


def test_a_reader_of_single_messages_reads_single_messages():
    up = chain(inputs=[DUMMY], id="up")

    assert remarked(up + chain(MEANS, inputs=["{type: pipeline, upstream: up}"])) == [
        "11:7: pipelines[1].transforms[0]:"
        " this reducer sees one message at a time: nothing before it batches"
    ]


def test_a_buffer_batches_and_a_reducer_makes_single_messages_of_them():
    mean = MEANS.replace("value", "mean")

    assert remarked(chain(BUFFER, MEANS, inputs=[DUMMY])) == []
    assert remarked(chain(BUFFER, MEANS, mean, inputs=[DUMMY])) == [
        "8:7: pipelines[0].transforms[2]: this reducer sees one message at a time:"
        " nothing after transforms[1] (reducer, line 7) batches"
    ]


def test_a_filter_for_a_field_that_is_not_there_lets_nothing_through():
    transforms = [filtering("temp", "less_than", 3), copying("value"), copying("nothing")]

    assert remarked(chain(*transforms, inputs=[DUMMY])) == [
        "6:39: pipelines[0].transforms[0]:"
        " reads 'temp', which inputs[0] (dummy, line 4) does not hand on",
        "7:7: pipelines[0].transforms[1]: no message ever comes here:"
        " transforms[0] (filter, line 6) hands on nothing without 'temp'",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("t", "greater_than", 5), ("t", "less_than", 5)),
        (("t", "equal_to", 1), ("t", "equal_to", 2)),
        (("t", "equal_to", "auto"), ("t", "equal_to", "manual")),
        (("t", "equal_to", "auto"), ("t", "contains", "man")),
        (("t", "equal_to", "auto"), ("t", "less_than", 3)),
    ],
)
def test_filters_that_contradict_each_other(one, other):
    transforms = [filtering(*one), copying("u"), filtering(*other)]

    assert remarked(chain(*transforms)) == [
        "10:7: pipelines[0].outputs[0]: no message ever comes here: transforms[2] (filter, line 8)"
        " drops every message that transforms[0] (filter, line 6) hands on"
    ]


def test_filters_with_a_write_between_them_do_not_contradict_each_other():
    writing = "{type: map, mappings: [{type: constant, as: t, value: {type: number, value: 3}}]}"

    assert (
        remarked(chain(filtering("t", "greater_than", 5), writing, filtering("t", "less_than", 5)))
        == []
    )


@pytest.mark.parametrize(
    ("buffer", "most"),
    [
        ("{type: buffer, size: 3}", 3),
        ("{type: buffer, size: 3, max_messages: 10}", 3),
        ("{type: buffer, seconds: 5, max_messages: 3}", 3),
        ("{type: splitter, out_size: 3}", 3),
    ],
)
def test_a_splitter_for_more_than_ever_comes_in_a_batch(buffer, most):
    assert remarked(chain(buffer, "{type: splitter, out_size: 4}")) == [
        "9:7: pipelines[0].outputs[0]: no message ever comes here: transforms[1] (splitter, line 7)"
        f" needs 4 messages in a batch, and at most {most} come in one"
    ]
    assert remarked(chain(buffer, "{type: splitter, out_size: 3}")) == []


def test_a_pipeline_whose_upstream_hands_on_nothing():
    up = chain("{type: splitter, out_size: 2}", inputs=[DUMMY], outputs=[], id="up")
    reading = "{type: pipeline, upstream: up}"

    assert remarked(up + chain(MEANS, inputs=[reading])) == [
        "9:7: pipelines[1].inputs[0]: no message ever comes here: nothing leaves pipeline 'up'"
    ]
    assert remarked(up + chain(MEANS, inputs=[reading, HTTP])) == [
        "9:7: pipelines[1].inputs[0]: no message ever comes here: nothing leaves pipeline 'up'"
    ]


def test_plain_settings_that_look_like_references():
    pipeline = chain(
        "{type: map, mappings: [{type: constant, as: site, value: {type: text, value: '${SITE}'}}]}",
        "{type: reducer, group_by: [a, 'b${'], aggregations: [{function: count, as: n}]}",
        inputs=["{type: http, auth: {type: bearer, token: '${TOKEN}'}}"],
    )

    assert remarked(pipeline) == [
        "6:84: pipelines[0].transforms[0].mappings[0].value.value:"
        " '${' is taken as it stands here: only secrets resolve references",
        "7:37: pipelines[0].transforms[1].group_by[1]:"
        " '${' is taken as it stands here: only secrets resolve references",
    ]


def test_null_among_texts_is_no_text_that_looks_like_one():
    parsing = "{type: parse, from: topic, split: {by: /, into: [null, 'm${', null]}}"
    table = "{type: http, format: csv, csv: {columns: [null, temp]}}"

    assert remarked(chain(parsing)) == [
        "6:62: pipelines[0].transforms[0].split.into[1]:"
        " '${' is taken as it stands here: only secrets resolve references"
    ]
    assert remarked(chain(inputs=[table])) == []


def test_remarks_are_made_beside_what_is_refused():
    text = chain(MEANS, "{type: splitter}", copying("mean"), inputs=[DUMMY, "{type: dumy}"])

    loaded, diagnostics = load_program(written(text), CATALOGUE)

    assert loaded is None
    assert plain(diagnostics) == [
        '5:14: pipelines[0].inputs[1].type: unknown type "dumy"',
        "8:7: pipelines[0].transforms[1].out_size: this key is required",
    ]
    loaded, diagnostics = load_program(
        written(text.replace("dumy", "dummy, duration: 1")), CATALOGUE
    )
    assert plain(diagnostics) == [
        "7:7: pipelines[0].transforms[0]: warning:"
        " this reducer sees one message at a time: nothing before it batches",
        "8:7: pipelines[0].transforms[1].out_size: this key is required",
    ]


def test_pipelines_in_a_circle_are_not_remarked_on_for_ever():
    one = chain(copying("x"), inputs=["{type: pipeline, upstream: b}"])
    other = chain(copying("x"), inputs=["{type: pipeline, upstream: a}"], id="b")

    _, diagnostics = load_program(written(one + other), CATALOGUE)

    assert [diagnostic.code for diagnostic in diagnostics] == ["cycle"]


def test_a_component_that_cannot_be_read_hides_nothing_but_what_it_hands_on():
    reading = chain(copying("temp"), inputs=["{type: pipeline, upstream: up}"])
    up = chain(inputs=[DUMMY], outputs=["{type: stdot}", "{type: stdout}"], id="up")

    _, diagnostics = load_program(written(up + reading), CATALOGUE)

    assert plain(diagnostics) == [
        '6:14: pipelines[0].outputs[0].type: unknown type "stdot"',
        "12:60: pipelines[1].transforms[0]: warning:"
        " reads 'temp', which inputs[0] (pipeline, line 10) does not hand on",
    ]


def test_a_secret_that_lacks_its_braces_is_remarked_on_and_nothing_of_it_shows():
    output = "{type: http, url: 'https://a.org', auth: {type: bearer, token: $WAGTAIL_7}}"

    [told] = diagnosed(chain(outputs=[output]))

    assert (told.code, told.severity, told.path) == (
        "literal-variable",
        "warning",
        "pipelines[0].outputs[0].auth.token",
    )
    assert (told.message, told.found, told.expected, told.suggestion) == (
        "what looks like $NAME is taken as it stands here: references have braces",
        None,
        "${NAME}",
        "write ${NAME} to refer to a variable, with its name inside",
    )
    assert "WAGTAIL" not in repr(told)


def test_a_secret_with_its_braces_or_without_a_variable_is_let_be():
    output = "{type: http, url: 'https://a.org', auth: {type: bearer, token: '%s'}}"

    assert remarked(chain(outputs=[output % "${TOKEN}", output % "Pa$$word"])) == []


def when(*conditions):
    return f"when: [{', '.join(conditions)}]"


def numeric(operator, value, field="temp"):
    return f"{{type: numeric, field: {field}, operator: {operator}, value: {value}}}"


TEMP = copying("temp", keep="mapped")


def test_what_the_conditions_of_an_output_look_at_is_missed_wherever_it_stands():
    inside = (
        f"{{type: any, conditions: [{numeric('at_least', 1, 'tmp')}, {numeric('at_most', 0)}]}}"
    )
    outputs = [
        f"{{type: stdout, {when(inside)}}}",
        f"{{type: stdout, {when(numeric('at_least', 1))}}}",
    ]

    assert remarked(chain(TEMP, outputs=outputs)) == [
        "8:77: pipelines[0].outputs[0]: reads 'tmp', which transforms[0] (map, line 6) does not hand on"
    ]


def test_an_output_that_wants_what_never_comes_is_never_reached_and_others_are():
    hot = f"{{type: filter, {when(numeric('at_least', 80))}}}"
    outputs = [f"{{type: stdout, {when(numeric('at_most', 70))}}}", "{type: stdout}"]

    assert remarked(chain(hot, outputs=outputs)) == [
        "8:7: pipelines[0].outputs[0]: no message ever comes here: 'when' of outputs[0] (stdout, line 8)"
        " drops every message that transforms[0] (filter, line 6) hands on"
    ]


def test_a_reader_that_wants_a_field_which_its_upstream_has_not():
    reader = f"{{type: pipeline, upstream: a, {when('{type: exists, field: machine}')}}}"
    text = chain(TEMP) + chain(BUFFER, inputs=[reader], id="b")

    assert remarked(text) == [
        "11:7: pipelines[1].inputs[0]: no message ever comes here: 'when' of inputs[0] (pipeline, line 11)"
        " hands on nothing without 'machine'",
        "11:66: pipelines[1].inputs[0]: reads 'machine', which pipeline 'a' does not hand on",
    ]


def test_what_a_reader_wants_is_known_of_what_it_reads():
    reader = f"{{type: pipeline, upstream: a, {when(numeric('at_least', 80))}}}"
    cold = f"{{type: filter, {when(numeric('at_most', 70))}}}"
    text = chain(inputs=[HTTP]) + chain(cold, inputs=[reader], id="b")

    assert remarked(text) == [
        "13:7: pipelines[1].outputs[0]: no message ever comes here: transforms[0] (filter, line 11)"
        " drops every message that inputs[0] (pipeline, line 9) hands on"
    ]


def test_an_output_that_waits_in_an_outage_has_others_wait():
    alone = chain(outputs=("{type: stdout, retry: {}}",))
    assert remarked(alone) == []

    both = chain(outputs=("{type: stdout, retry: true}", "{type: stdout}", "{type: stdout}"))
    assert remarked(both) == [
        "6:29: pipelines[0].outputs[0].retry: in an outage 2 other outputs of this pipeline will wait as"
        " well, as soon as an input has 16 batches on their way"
    ]


def test_who_must_not_wait_is_told_of_a_queue_where_the_output_may_have_one():
    outputs = ("{type: stdout, retry: {}}", "{type: http, url: 'https://a/b', retry: {}}")

    told = [one.suggestion for one in diagnosed(chain(outputs=outputs))]

    assert told == [
        "give it a pipeline and an input of its own where others must not wait",
        "give it 'queue', or a pipeline and an input of its own where others must not wait",
    ]


def test_without_retry_an_outage_fills_the_dead_letters():
    def kept(*outputs):
        return chain(outputs=outputs).replace("- id: a", "- id: a\n  dead_letters: true")

    posts = "{type: http, url: 'https://a/b'}"
    assert remarked(kept("{type: stdout}")) == []
    assert remarked(kept("{type: stdout}", posts)) == [
        "3:3: pipelines[0].dead_letters: no output has 'retry', so while a server is away all that comes"
        " becomes dead letters"
    ]
    assert remarked(kept(posts, posts.replace("}", ", queue: {}}"))) == []


def reading(upstream, *, id, more=""):
    return chain(
        inputs=[f"{{type: pipeline, upstream: {upstream}, upstream_ack: on_delivery{more}}}"], id=id
    )


def test_an_upstream_that_is_waited_for_although_nothing_of_it_comes_again():
    first, second = remarked(chain() + reading("a", id="b") + reading("b", id="c"))

    place, _, said = first.partition(": ")
    assert place.startswith("9:")
    assert said == (
        "pipelines[1].inputs[0].upstream_ack: no input of 'a' is durable or acknowledges on_delivery, so"
        " nothing comes again that it waits for here"
    )
    assert "no input of 'b' is durable" in second


@pytest.mark.parametrize(
    "source",
    [
        "{type: http, durable: true}",
        "{type: dummy, duration: 1, durable: {}}",
        "{type: kafka, connection: k, topic: t, group: g, ack: on_delivery}",
    ],
)
def test_an_upstream_that_keeps_what_comes_is_waited_for(source):
    text = chain(inputs=[source]) + reading("a", id="b") + reading("b", id="c")

    assert remarked(text) == []
