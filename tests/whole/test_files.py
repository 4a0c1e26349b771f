"""Files as the outside finds them: complete after a delete, and written again once that is possible."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.forked import serving
from tests.server import Server, filed, stored

PART = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-000001\.(json|ndjson)")


def writing(**options: Any) -> list[dict[str, Any]]:
    """Return a config that files what is posted to `p`, and prints it."""
    out = {"type": "file", "connection": "disk", "path": "out", **options}
    return [{"id": "p", "inputs": [{"type": "http"}], "outputs": [out, {"type": "stdout"}]}]


def delete(server: Server) -> None:
    """Delete the pipeline; what it wrote is on the disk then."""
    assert server.request("DELETE", "/api/pipelines/p").status == 204


def failed(server: Server) -> float:
    """Return how many batches the file output has lost."""
    return server.metric("headrace_failures_total", pipeline="p", stage="output")


@pytest.mark.parametrize(
    ("form", "read"), [("json_array", json.loads), ("ndjson", lambda text: [json.loads(text)])]
)
def test_a_file_is_complete_when_the_delete_is_answered(
    tmp_path: Path, form: str, read: Callable[[str], Any]
) -> None:
    options = filed(tmp_path)
    hold = {"type": "buffer", "size": 1000, "seconds": 3600}
    [pipeline] = writing(format=form)
    with serving(tmp_path, [{**pipeline, "transforms": [hold]}], *options) as server:
        server.post("p", {"n": [1, "zwei", None]})

        delete(server)

        [part] = (tmp_path / "data" / "out").iterdir()
        assert PART.fullmatch(part.name)
        assert read(part.read_text()) == [{"n": [1, "zwei", None]}]


@pytest.mark.long
def test_a_pipeline_that_received_nothing_leaves_no_file(tmp_path: Path) -> None:
    options = filed(tmp_path)
    with serving(tmp_path, writing(), *options) as server:
        delete(server)

    assert not (tmp_path / "data" / "out").exists()


@pytest.mark.long
def test_a_data_directory_that_is_exchanged_for_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    options = filed(tmp_path)
    data, moved, elsewhere = tmp_path / "data", tmp_path / "moved", tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = {**writing()[0], "id": "again"}
    with serving(tmp_path, writing(rotate={"max_rows": 1}), *options) as server:
        assert server.post("p", {"n": 1}).status == 202
        server.out.wait()
        data.rename(moved)
        data.symlink_to(elsewhere)

        assert server.post("p", {"n": 2}).status == 202
        delete(server)
        refused = server.request("POST", "/api/pipelines", json.dumps(again).encode())

    assert stored(moved / "out") == [{"n": 1}, {"n": 2}]
    assert (refused.status, list(elsewhere.iterdir())) == (422, [])
    assert "leads out of --data-dir" in refused.value["error"]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit")
def test_where_there_is_no_room_a_batch_is_lost_whole_and_later_ones_are_written(
    tmp_path: Path,
) -> None:
    options = filed(tmp_path)
    small, large = [{"n": 1}], [{"n": 2, "filling": "x" * 10_000}]
    with serving(tmp_path, writing(), *options) as server:
        events = server.events()
        # A limit on the size of a file refuses a write in its middle, as a full disk does.
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, -1))
        for batch in (small, large, small):
            server.post("p", batch)
        error = next(e for e in events if "error" in e["payload"])
        server.out.wait(3)
        lost = failed(server)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))
        server.post("p", large)
        server.out.wait(4)
        delete(server)

        assert (error["stage"], error["component"]) == ("output", 0)
        assert error["payload"]["error"] == "writing to 'out': file too large"
        server.err.find(re.compile(r"pipeline 'p' outputs\[0\]: writing to 'out': file too large"))
        assert lost == 1
        # The other output got all of it.
        printed = [json.loads(line)["batch"] for line in server.out.wait(4)]
        assert printed == [small, large, small, large]

    assert stored(tmp_path / "data" / "out") == [*small, *small, *large]


_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE = 1


def mind_permissions() -> None:
    """Have the command obey the permissions of files, also where root runs the tests."""
    if os.geteuid() == 0 and _LIBC.prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE) != 0:
        raise OSError(ctypes.get_errno(), "cannot give up root's way past permissions")


@pytest.mark.long
@pytest.mark.parametrize("form", ["ndjson", "json_array"])
def test_where_it_may_not_write_a_batch_is_lost_and_later_ones_are_written(
    tmp_path: Path, form: str
) -> None:
    options = filed(tmp_path)
    folder = tmp_path / "data" / "out"
    folder.mkdir(parents=True)
    folder.chmod(0o555)
    with serving(tmp_path, writing(format=form), *options, setup=mind_permissions) as server:
        events = server.events()
        server.post("p", [{"n": 1}])
        error = next(e for e in events if "error" in e["payload"])
        server.post("p", [{"n": 2}])
        server.out.wait(2)
        lost = failed(server)
        folder.chmod(0o755)
        server.post("p", [{"n": 3}])
        server.out.wait(3)
        delete(server)

        assert error["payload"]["error"] == "writing to 'out': permission denied"
        assert lost == failed(server) + 2 == 2

    [part] = folder.iterdir()
    text = part.read_text()
    assert text == ('[{"n":3}]' if form == "json_array" else '{"n":3}\n')
