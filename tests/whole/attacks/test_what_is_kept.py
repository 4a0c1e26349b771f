"""The net under all tests of the whole command: a server that says a secret fails the test it is in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.forked import serving
from tests.server import PLANTED, environment, kept_secret, settled

HTTP = {"type": "http"}


def test_what_is_secret_is_known_by_the_files(tmp_path: Path) -> None:
    (tmp_path / "secrets.json").write_text(json.dumps({"A": "a-long-value", "B": "short"}))
    users = {
        "ann": {"password": "correct horse"},
        "bob": {"password": "${A}", "role": "admin"},
        "eve": {"password_hash": "$argon2id$v=19$..."},
    }
    options = settled(tmp_path, auth={"type": "basic", "users": users})

    kept = kept_secret(tmp_path, ["--secrets", "secrets.json", *options])

    assert kept == [PLANTED, "a-long-value", "correct horse", "$argon2id$v=19$..."]
    assert PLANTED in environment().values()


@pytest.mark.parametrize("value", [PLANTED, "a-long-value"])
def test_a_server_that_says_it_fails_the_test(tmp_path: Path, value: str) -> None:
    (tmp_path / "secrets.json").write_text(json.dumps({"A": "a-long-value"}))
    output = {"type": "http", "url": "http://127.0.0.1:9/"}
    # As the name of a pipeline it is no secret to the server, which knows none that it has not used.
    config = [{"id": value, "inputs": [HTTP], "outputs": [output]}]

    with pytest.raises(AssertionError, match=f"logged what is secret: .*{re.escape(value)}"):
        fail(tmp_path, config)


def fail(folder: Path, config: Any) -> None:
    """Have a server log that a pipeline has failed."""
    with serving(folder, config, "--secrets", "secrets.json") as server:
        server.post(config[0]["id"], {"n": 1})
        server.err.find(re.compile("connection refused"))
