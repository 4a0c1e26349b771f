"""Clients that generators make of the served description: they are whole, they import and they run."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import HOST
from tests.server import Server, serving
from tests.services.node_packages import modules
from tests.services.programs import program

pytestmark = pytest.mark.long

PACKAGE = "generated_headrace"
TYPES = Path(__file__).with_name("program.ts")
# A key that has a default may be left out of what is sent: without this it had to be there.
LEAVES_OUT_DEFAULTS = ["--default-non-nullable", "false"]

HOT = {
    "id": "hot",
    "inputs": [{"type": "http"}],
    "transforms": [
        {
            "type": "filter",
            "Numeric": {"field": "celsius", "operator": "greater_than", "value": 20},
        },
        {"type": "map", "mappings": [{"type": "copy", "from": "celsius", "as": "warm"}]},
        {
            "type": "reducer",
            "aggregations": [{"function": "max", "field": "warm", "as": "most"}],
        },
    ],
    "outputs": [{"type": "stdout"}],
}


def ran(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search("warning|⚠", done.stdout + done.stderr, re.IGNORECASE), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder that the server works in, with what it says of itself and what is made of that."""
    return tmp_path_factory.mktemp("generated")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving(folder) as server:
        (folder / "openapi.json").write_bytes(server.get("/api/openapi.json").body)
        yield server


class Generated:
    """The package that openapi-python-client makes, and a client of it."""

    def __init__(self, port: int) -> None:
        made = importlib.import_module(f"{PACKAGE}.client")
        self.models = importlib.import_module(f"{PACKAGE}.models")
        # No proxy of this machine is asked for a server on it.
        self.client = made.Client(
            base_url=f"http://{HOST}:{port}",
            raise_on_unexpected_status=True,
            httpx_args={"trust_env": False},
        )

    def ask(self, tag: str, operation: str, *arguments: Any, **keywords: Any) -> Any:
        """Call an operation; return what the answer was read as."""
        module = importlib.import_module(f"{PACKAGE}.api.{tag}.{operation}")
        return module.sync_detailed(*arguments, client=self.client, **keywords).parsed


@pytest.fixture(scope="module")
def generated(server: Server, folder: Path) -> Iterator[Generated]:
    settings = folder / "generator.json"
    settings.write_text(json.dumps({"post_hooks": []}))  # how it looks is nobody's business here
    generator = program("openapi-python-client", "it comes with `make test`")
    described = ["--path", "openapi.json", "--config", settings]
    whole = ["--output-path", PACKAGE, "--meta", "none", "--fail-on-warning"]
    ran(generator, "generate", *described, *whole, cwd=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        made = Generated(server.port)
        with made.client:
            yield made
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.mark.long
def test_a_python_client_lists_creates_posts_and_deletes(
    server: Server, generated: Generated
) -> None:
    models = generated.models
    created = generated.ask("pipelines", "create_pipeline", body=models.Config.from_dict(HOT))
    listed = generated.ask("pipelines", "list_pipelines")
    posted = generated.ask(
        "pipelines", "ingest_messages", "hot", body=[{"celsius": 21}, {"celsius": 19}]
    )
    told = json.loads(server.out.wait()[0])
    history = generated.ask("pipelines", "get_pipeline_history", "hot")
    deleted = generated.ask("pipelines", "delete_pipeline", "hot")
    gone = generated.ask("pipelines", "delete_pipeline", "hot")

    assert type(created) is models.PipelineDto
    assert [each.id for each in listed] == ["hot"]
    filtering, mapping, reducer = listed[0].config.transforms
    assert type(filtering) is models.NumericFilterTransform
    assert filtering.numeric.value == 20
    assert type(mapping.mappings[0]) is models.CopyMapping
    assert reducer.aggregations[0].as_ == "most"
    assert posted == models.IngestResponse(accepted=2)
    assert told["batch"] == [{"most": 21}]
    assert type(history) is models.PipelineHistory
    assert history.resolution is models.HistoryResolution.COARSE
    assert deleted is None
    assert type(gone) is models.ApiError


def test_what_a_python_client_builds_by_hand_is_taken(generated: Generated) -> None:
    models = generated.models
    config = models.Config(
        id="built",
        inputs=[models.DummyInput(type_="dummy", duration=3600)],
        transforms=[
            models.StringFilterTransform(
                type_="filter",
                string=models.String(
                    field="value", operator=models.StringOperator.CONTAINS, value="1"
                ),
            ),
            models.BufferTransform(type_="buffer", size=2),
        ],
        outputs=[models.StdoutOutput(type_="stdout")],
    )

    created = generated.ask("pipelines", "create_pipeline", body=config)

    assert type(created) is models.PipelineDto, created
    assert type(created.config.transforms[0]) is models.StringFilterTransform


def test_a_python_client_tells_the_outcomes_of_dry_runs_apart(generated: Generated) -> None:
    models = generated.models

    def chain(transforms: list[Any]) -> Any:
        body = {"messages": [{"n": 1}], "transforms": transforms}
        asked = models.PipelineDryRunRequest.from_dict(body)
        return generated.ask("pipelines", "dry_run_pipeline", body=asked)

    def script(code: str) -> Any:
        body = {"source": {"type": "inline", "code": code}, "messages": [{"n": 1}]}
        asked = models.DryRunRequest.from_dict(body | {"state": {"m1": {"mode": "auto"}, "": {}}})
        return generated.ask("pipelines", "dry_run_script", body=asked)

    through = chain([{"type": "splitter", "out_size": 1}])
    stuck = chain([{"type": "map", "mappings": [{"type": "copy", "from": "m"}]}])
    emitted, uncompiled = script("emit(msg);"), script("emit(;")

    assert type(through) is models.PipelineDryRunRan
    assert through.stages[0].batches == [[{"n": 1}]]
    assert type(stuck) is models.PipelineDryRunFailed
    assert (stuck.at, stuck.kind) == (0, "map")
    assert type(emitted) is models.DryRunEmitted
    assert emitted.state["m1"].to_dict() == {"mode": "auto"}
    assert type(uncompiled) is models.DryRunFailed
    assert uncompiled.stage is models.DryRunStage.COMPILE


def test_a_python_client_files_connections_and_takes_samples(generated: Generated) -> None:
    models = generated.models
    disk = models.CreateFileConnectionRequest(id="shelf", type_="file", root="shelf")

    filed = generated.ask("connections", "create_connection", body=disk)
    listed = generated.ask("connections", "list_connections")
    sampled = generated.ask(
        "pipelines",
        "sample_input",
        body=models.SampleRequest(models.DummyInput(type_="dummy", duration=1), max_messages=1),
    )

    assert filed == disk
    assert type(listed["shelf"]) is models.FileConnection
    assert type(sampled) is models.SampleSampled


def test_generated_types_hold_a_program_to_the_api_and_it_runs(
    server: Server, folder: Path
) -> None:
    node, installed = program("node", "install Node.js 18 or newer"), modules("openapi-typescript")
    generator = installed / "openapi-typescript" / "bin" / "cli.js"
    compiler = installed / "typescript" / "bin" / "tsc"
    (folder / "program.ts").write_bytes(TYPES.read_bytes())

    ran(node, generator, "openapi.json", "-o", "api.d.ts", *LEAVES_OUT_DEFAULTS, cwd=folder)
    how = ["--strict", "--target", "es2022", "--module", "commonjs", "--pretty", "false"]
    ran(node, compiler, *how, "program.ts", cwd=folder)
    called = f"require('./program.js').run('http://{HOST}:{server.port}')"
    said = ran(node, "-e", f"{called}.then(said => console.log(JSON.stringify(said)))", cwd=folder)

    assert json.loads(said) == [
        "file",
        "running",
        "filter",
        'emitted [[{"n":1}]]',
        "failed to compile at line 1",
    ]
