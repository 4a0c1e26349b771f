"""What happens when in a play: timers, what is given, looks at buckets, and the end."""

from headrace.authoring.playing.played import END
from headrace.authoring.playing.scenario import BucketLook, GivenState
from tests.authoring.playing.playing import at, only, played

WINDOW = """
- id: w
  inputs: [{type: mqtt, connection: c, topic: t}]
  transforms: [{type: buffer, seconds: 60, max_messages: 100}]
"""
BUCKET = """
state: {last: {max_keys: 10}}
pipelines:
  - id: w
    inputs: [{type: http}]
    state: {bucket: last, key: id}
    transforms:
      - {type: remember, remember: [{field: n, as: n}]}
  - id: r
    inputs: [{type: http}]
    state: {bucket: last, key: id}
    transforms: [{type: recall, recall: [n], on_missing: "null"}]
"""


def test_what_comes_as_a_window_ends_belongs_to_the_next():
    came = played(
        WINDOW, at(0, "w", {"n": 1}), at(60, "w", {"n": 2}), at(120, "w", {"n": 3}), until=150
    )

    assert only("n", came.handed_on["w"]) == [(60, [1]), (120, [2]), (END, [3])]


def test_what_is_held_at_the_end_is_let_go_then():
    came = played(WINDOW, at(0, "w", {"n": 1}), until=59)

    assert only("n", came.handed_on["w"]) == [(END, [1])]


def test_what_is_given_at_one_moment_comes_in_its_order_each_through_before_the_next():
    came = played(
        BUCKET,
        at(5, "w", {"id": "a", "n": 1}),
        at(5, "r", {"id": "a"}),
        at(5, "w", {"id": "a", "n": 2}),
    )

    assert came.handed_on["r"] == [(5, [{"id": "a", "n": 1}])]


def test_a_bucket_is_looked_at_behind_all_that_is_given():
    came = played(
        BUCKET,
        BucketLook(5, "last"),
        at(5, "w", {"id": "a", "n": 1}),
        at(6, "w", {"id": "a", "n": 2}),
        BucketLook(END, "last"),
    )

    assert came.states == {("last", 5): {"a": {"n": 1}}, ("last", END): {"a": {"n": 2}}}


def test_a_bucket_can_be_written_to():
    came = played(BUCKET, GivenState(1, "last", {"a": {"n": 7}}), at(1, "r", {"id": "a"}))

    assert came.handed_on["r"] == [(1, [{"id": "a", "n": 7}])]


def test_a_pipeline_that_reads_another_gets_what_that_lets_go_at_the_end():
    came = played(
        WINDOW + "- id: r\n  inputs: [{type: pipeline, upstream: w}]\n",
        at(0, "w", {"n": 1}),
        until=1,
    )

    assert came.handed_on["r"] == [(END, [{"n": 1}])]


def test_nothing_given_is_nothing_come():
    came = played(WINDOW, until=3600)

    assert came.handed_on == {"w": []}
    assert [came.failures, came.warnings, came.refused, came.states] == [[], [], {}, {}]
