"""One pipeline in a notebook or a test."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

import headrace
from headrace import Pipeline
from headrace.authoring.language.durations import NotADuration
from headrace.authoring.offlinepipeline import NoSuchPipeline, WrongReply
from headrace.authoring.playing.playlength import PlayTooLong
from headrace.authoring.playing.scenario import START
from headrace.compiler.errors import Refused

CONFIG = """
state: {last: {}}
pipelines:
  - id: minutes
    inputs: [{type: mqtt, connection: plant, topic: t}]
    state: {bucket: last, key: site}
    transforms:
      - {type: remember, remember: [{field: temp, as: temp}]}
      - {type: buffer, seconds: 60, max_messages: 100}
    outputs: [{type: redis, connection: bus, channel: minutes}]
  - id: alarms
    inputs: [{type: pipeline, upstream: minutes}]
    transforms:
      - {type: filter, Numeric: {field: temp, operator: greater_than, value: 80}}
  - id: asking
    inputs: [{type: http}]
    transforms: [{type: http, url: "http://127.0.0.1:9/x", verb: POST}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "config.connections.yaml").write_text(
        "plant: {type: mqtt, host: '${NOBODY_HAS_IT}'}\nbus: {type: redis, url: 'redis://127.0.0.1:1'}\n"
    )
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return path


def test_messages_go_in_and_what_leaves_the_last_transform_comes_out(file: Path):
    came = Pipeline.from_yaml(file, "minutes").run(
        [{"site": "a", "temp": n} for n in (1, 2)], until="5m"
    )

    assert came.batches == [(60, [{"site": "a", "temp": 1}, {"site": "a", "temp": 2}])]
    assert came.messages == [{"site": "a", "temp": 1}, {"site": "a", "temp": 2}]
    assert came.state == {"a": {"temp": 2}}
    assert (came.failures, came.warnings) == ([], [])


def test_a_pipeline_that_reads_another_is_run_alone(file: Path):
    alarms = Pipeline.from_yaml(file, "alarms")

    assert alarms.run([{"temp": 90}, {"temp": 10}], every="1m").batches == [(0, [{"temp": 90}])]


def test_messages_may_come_at_moments_and_in_batches(file: Path):
    alarms = Pipeline.from_yaml(file, "alarms")

    came = alarms.run({"90s": [{"temp": 90}, {"temp": 91}], "1m": {"temp": 92}})

    assert came.batches == [(60, [{"temp": 92}]), (90, [{"temp": 90}, {"temp": 91}])]


def test_what_is_held_comes_at_the_end(file: Path):
    came = Pipeline.from_yaml(file, "minutes").run([{"site": "a"}], until="5s")

    assert [at for at, _ in came.batches] == [math.inf]


def test_servers_answer_as_it_is_written(file: Path):
    asking = Pipeline.from_yaml(file, "asking")

    assert asking.run([{"n": 1}], replies={0: {"$echo": {"m": 2}}}).messages == [{"n": 1, "m": 2}]
    [failure] = asking.run([{"n": 1}], replies={0: [503]}).failures
    assert "503" in failure.text
    with pytest.raises(WrongReply, match="expected a status from 100 to 599"):
        asking.run([], replies={0: 99})


def test_the_bucket_may_hold_something_at_first(file: Path):
    came = Pipeline.from_yaml(file, "minutes").run(
        [{"site": "b", "temp": 1}], state={"a": {"temp": 7}}
    )

    assert came.state == {"a": {"temp": 7}, "b": {"temp": 1}}


def test_each_run_begins_anew(file: Path):
    minutes = Pipeline.from_yaml(file, "minutes")

    one, other = (
        minutes.run([{"site": "a", "temp": 1}], start=datetime(2030, 1, 1, tzinfo=UTC))
        for _ in "ab"
    )

    assert one == other


async def test_it_runs_where_a_loop_runs_already(file: Path):
    assert asyncio.get_running_loop().is_running()

    assert Pipeline.from_yaml(file, "alarms").run([{"temp": 90}]).messages == [{"temp": 90}]


def test_what_is_wrong_is_raised_with_its_reasons(file: Path):
    with pytest.raises(NoSuchPipeline, match=r"no pipeline 'x' .there is one of minutes, alarms"):
        Pipeline.from_yaml(file, "x")
    with pytest.raises(NoSuchPipeline, match="which pipeline is it: one of minutes, alarms"):
        Pipeline.from_yaml(file)
    with pytest.raises(FileNotFoundError, match=r"no such config: .*none\.yaml"):
        Pipeline.from_yaml(file.with_name("none.yaml"))
    with pytest.raises(Refused, match="unknown type"):
        Pipeline.from_text("- {id: a, inputs: [{type: htp}]}")
    with pytest.raises(NotADuration, match='"soon" is no duration such as 90s'):
        Pipeline.from_yaml(file, "alarms").run([], every="soon")
    with pytest.raises(NotADuration, match="5 is no duration such as 90s"):
        Pipeline.from_yaml(file, "alarms").run([], until=5)  # type: ignore[arg-type]


def test_a_notebook_shows_both(file: Path):
    asking = Pipeline.from_text("- {id: '<b>', inputs: [{type: http}], outputs: [{type: stdout}]}")

    assert asking._repr_html_() == "<p><b>&lt;b&gt;</b> <code>http</code> → <code>stdout</code></p>"
    assert repr(asking) == "<Pipeline '<b>': http → stdout>"
    shown = asking.run(["<i>"] * 60)._repr_html_()
    assert shown.startswith("<pre>a b c d ")
    assert "<td>a</td><td>0s</td><td>[&#x27;&lt;i&gt;&#x27;]</td>" in shown
    assert "and 10 batches more" in shown


def test_the_package_imports_what_is_asked_for_and_nothing_before():
    script = "import sys, headrace; print(*(name for name in sys.modules if 'authoring' in name), sep='')"

    told = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )

    assert told.stdout.strip() == ""
    assert {"Came", "Pipeline"} <= {*dir(headrace)}
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = headrace.Nothing


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_made_by_their_library(library: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, library, SimpleNamespace(DataFrame=tuple))
    came = Pipeline.from_text("- {id: a, inputs: [{type: http}]}").run([{"n": 1}])

    assert getattr(came, f"to_{library}")() == ({"n": 1},)


def test_a_reply_is_for_a_transform_that_asks(file: Path):
    asked = "{type: http, url: 'http://127.0.0.1:9/', verb: POST}"
    asking = Pipeline.from_text(f"- {{id: a, inputs: [{{type: http}}], transforms: [{asked}]}}")

    with pytest.raises(WrongReply, match=r"replies\[1\]: a server is asked by transform 0"):
        asking.run([1], replies={1: 200})
    with pytest.raises(WrongReply, match=r"replies\[0\]: no transform asks a server"):
        Pipeline.from_yaml(file, "alarms").run([1], replies={0: 200})


@pytest.mark.parametrize("start", [START.replace(tzinfo=None), datetime(9999, 12, 31, tzinfo=UTC)])
def test_a_start_whose_moments_have_no_wall_is_told(start: datetime):
    with pytest.raises(ValueError, match=r"no offset|end of the calendar"):
        Pipeline.from_text("- {id: p, inputs: [{type: http}]}").run([1], start=start)


def test_a_text_that_cannot_be_written_is_refused():
    with pytest.raises(Refused):
        Pipeline.from_text("\ud800")


def test_a_run_takes_as_many_moments_as_it_may():
    pipeline = Pipeline.from_text("""
- id: p
  inputs: [{type: http}]
  transforms: [{type: splitter, out_size: 1}, {type: http, url: "http://127.0.0.1:9/x", verb: POST}]
""")
    slow = {1: {"$echo": {}, "$after": "1s"}}
    batch = [[{"n": n} for n in range(150)]]

    came = pipeline.run(batch, until="1h", replies=slow)

    assert len(came.messages) == 150
    with pytest.raises(PlayTooLong, match="timers were due at 101 moments"):
        pipeline.run(batch, until="1h", replies=slow, max_moments=1)
    with pytest.raises(ValueError, match="max_moments is 0, and has to be at least 1"):
        pipeline.run(batch, max_moments=0)
