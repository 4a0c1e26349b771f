"""State, gates, scripts and dry runs of the installed command over HTTP, on the machines config."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.clients import PATIENCE
from tests.forked import run, serving
from tests.server import Server, stored

Json = dict[str, Any]

CONFIG = Path(__file__).parents[2] / "specs" / "machines" / "config.yaml"
CELSIUS = """\
import "scripts/units" as units;
msg.temp = units::celsius(msg.temp, msg.unit);
emit(msg);
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return the command that serves the config, for all who leave it running."""
    with serving(tmp_path_factory.mktemp("served"), CONFIG, "--data-dir", "data") as server:
        yield server


def tell(server: Server, press: str, mode: str, **more: Any) -> None:
    """Tell the mode of a press, and wait until it is remembered."""
    assert server.post("modes", {"press": press, "mode": mode, **more}).status == 202
    gives_up = monotonic() + PATIENCE
    while remembered(server).get(press, {}).get("mode") != mode:
        assert monotonic() < gives_up, f"the mode of {press} is not remembered"


def remembered(server: Server) -> dict[str, Json]:
    """Return the values of each press, the latest first."""
    contents = server.get("/api/state/machines").value
    return {entry["key"]: entry["values"] for entry in contents["entries"]}


def readings(*temps: Any) -> list[Json]:
    return [{"press": "press-7", "temp": temp, "unit": "C"} for temp in temps]


def flagged(rows: list[Json]) -> list[tuple[Any, ...]]:
    return [(row["temp"], row["mode"], row["order"], row["flags"]) for row in rows]


def held(server: Server) -> float:
    return server.metric("headrace_messages_held", pipeline="press-7")


def dry_run(server: Server, of: str, **body: Any) -> Json:
    """Return what a dry run answers."""
    answer = server.request("POST", f"/api/{of}/dry-run", json.dumps(body).encode())
    assert answer.status == 200, answer.body
    said: Json = answer.value
    return said


def test_readings_wait_until_the_press_is_told_to_run_and_go_on_enriched(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG, "--data-dir", "data") as server:
        assert server.post("press-7", readings(50, 70)).value == {"accepted": 2}
        tell(server, "press-7", "setup", order="A-1", limits={"temp": 65})
        tell(server, "press-9", "auto")

        assert list(remembered(server).items()) == [
            ("press-9", {"mode": "auto"}),
            ("press-7", {"mode": "setup", "order": "A-1", "max_temp": 65}),
        ]
        [bucket] = server.get("/api/state").value
        assert (bucket["name"], bucket["keys"], held(server)) == ("machines", 2, 2)

        tell(server, "press-7", "auto")
        [opened] = server.out.wait(1)
        tell(server, "press-7", "off")
        assert server.post("press-7", readings(40)).status == 202
        assert server.stop() == 0

        first, last = (json.loads(line)["batch"] for line in server.out.all())
        assert json.loads(opened)["batch"] == first
        assert flagged(first) == [(50.0, "auto", "A-1", []), (70.0, "auto", "A-1", ["hot"])]
        assert flagged(last) == [(40.0, "off", "A-1", ["idle"])]
        assert stored(tmp_path / "data" / "press-7") == [*first, *last]


def scripted(id: str, code: str) -> bytes:
    """Return the body that creates a pipeline of one script."""
    script = {"type": "script", "source": {"type": "inline", "code": code}}
    ends = {"inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}
    return json.dumps({"id": id, **ends, "transforms": [script]}).encode()


FAILING = {
    "inline": (
        "let n = msg.n;\n  emit(100 / n);",
        "script line 2, column 12: Division by zero",
    ),
    "module": (
        CELSIUS,
        "scripts/units.rhai line 11, column 26: a temperature that is no number",
    ),
    "endless": (
        "emit(1);\nwhile msg.n == 0 { }",
        "script line 2: stopped after 100000 operations: raise 'max_operations' if it needs more",
    ),
}
GOOD, BAD = {"n": 1, "temp": 20, "unit": "C"}, {"n": 0, "unit": "C"}


@pytest.mark.parametrize("id", FAILING)
def test_a_script_that_fails_is_told_with_its_place_and_the_next_batch_goes_on(
    server: Server, id: str
) -> None:
    code, error = FAILING[id]
    assert server.request("POST", "/api/pipelines", scripted(id, code)).status == 201
    events = server.events()

    assert server.post(id, [GOOD, BAD, GOOD]).status == 202
    told = events.next(pipeline_id=id, stage="transform")
    assert server.post(id, [GOOD]).status == 202

    printed = json.loads(server.out.find(re.compile(f'.*"pipeline":"{id}".*'))[0])
    assert printed["count"] == 1
    assert (told["component"], told["payload"]) == (0, {"error": error})
    server.err.find(re.compile(re.escape(f"WARNING pipeline '{id}' transforms[0]: {error}")))
    assert server.metric("headrace_failures_total", pipeline=id, stage="transform") == 1


def test_a_script_that_does_not_compile_is_refused_at_its_place_in_the_body(
    server: Server,
) -> None:
    body = scripted("refused", "let n = msg.n;\n  emit(n;\n")

    refused = server.request("POST", "/api/pipelines", body)

    [wrong] = refused.value["diagnostics"]
    assert refused.status == 422
    assert (wrong["code"], wrong["path"]) == ("not-compiled", "transforms[0].source.code")
    assert body[wrong["column"] - 1 :].startswith(b';\\n"')


def test_dry_runs_show_what_the_pipeline_would_do_and_touch_nothing(server: Server) -> None:
    tell(server, "press-7", "setup", order="A-1")
    transforms = server.get("/api/pipelines").value[1]["config"]["transforms"]
    before = remembered(server)

    said = dry_run(
        server,
        "pipelines",
        messages=[*readings(50, "cold"), {"press": "press-9"}],
        transforms=transforms,
        state={"bucket": "machines", "key": "press"},
        buckets={"press-7": {"mode": "off", "order": "B-1", "max_temp": 45}},
        advance_seconds=600,
        attribution=True,
    )

    assert said["outcome"] == "ran"
    assert [stage["kind"] for stage in said["stages"]] == ["filter", "buffer", "recall", "script"]
    [enriched] = said["stages"][-1]["on_flush"]
    assert flagged(enriched) == [
        (50.0, "off", "B-1", ["idle", "hot"]),
        ("cold", "off", "B-1", ["idle", "odd"]),
    ]
    assert said["stages"][-1]["on_flush_origins"] == [[[0], [1]]]
    assert [(left["message"], left["kind"]) for left in said["left"]] == [(2, "filter")]
    assert said["warnings"] == [
        "transforms[3]: scripts/enrich.rhai: press-7: a temperature that is no number"
    ]
    assert remembered(server) == before
    assert held(server) == 0


def test_a_dry_run_of_a_script_file_shows_what_it_emits_or_where_it_fails(server: Server) -> None:
    enrich = {"type": "file", "path": "scripts/enrich.rhai"}

    emitted = dry_run(server, "scripts", source=enrich, messages=readings(50, "cold"))
    failed = dry_run(server, "scripts", source={"type": "inline", "code": CELSIUS}, messages=[BAD])

    [batch] = emitted["batches"]
    assert [(row["temp"], row["flags"]) for row in batch] == [
        (50.0, ["unknown"]),
        ("cold", ["unknown", "odd"]),
    ]
    assert emitted["warnings"] == ["press-7: a temperature that is no number"]
    assert failed == {
        "outcome": "failed",
        "stage": "runtime",
        "message": "scripts/units.rhai: a temperature that is no number",
        "line": 11,
        "column": 26,
    }


BROKEN = """\
state:
  machines: {}
pipelines:
  - id: press-7
    inputs:
      - type: http
    transforms:
      - type: script
        source:
          type: inline
          code: |
            if msg.temp > 62 {
              msg.flags = ["hot"];
            }
            emit(msg;
"""


@pytest.mark.parametrize("command", ["check", "serve --config"])
def test_a_config_with_a_broken_script_is_refused_at_its_place_in_the_file(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "config.yaml").write_text(BROKEN)

    refused = run(tmp_path, *command.split(), "config.yaml")

    assert refused.returncode == 1
    place = (
        "config.yaml:15:21: pipelines[0].transforms[0].source.code: the script does not compile: "
    )
    assert place in refused.stdout + refused.stderr
