"""What the page of diagnostics keeps of other servers: they say it again."""

from __future__ import annotations

import shutil
from contextlib import chdir
from pathlib import Path

from headrace.authoring.configfiles import catalogue
from headrace.web.docs.diagnosticspage import refusals_of
from headrace.web.docs.markdown import fenced
from headrace.web.docs.transcripts import not_started
from headrace.web.files.reading import Files, load
from tests.services.redis import Redis

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "errors"
ADDRESS = "127.0.0.1:6379"


def test_nothing_else_is_kept() -> None:
    assert [path.name for path in EXAMPLES.glob("*.console")] == ["turned-away.console"]


def test_a_server_with_a_password_turns_the_example_away(tmp_path: Path) -> None:
    config, beside = Path("turned-away.yaml"), Path("turned-away.connections.yaml")
    with Redis(tmp_path / "redis", password="s3cret") as server, chdir(tmp_path):
        shutil.copy(EXAMPLES / config, config)
        beside.write_text((EXAMPLES / beside).read_text().replace(ADDRESS, server.address))
        loaded = load(Files(config), catalogue())
        said = not_started(config, loaded, refusals_of(loaded))

    kept = (EXAMPLES / "turned-away.console").read_text()
    assert said.replace(server.address, ADDRESS) == fenced("console", kept)
