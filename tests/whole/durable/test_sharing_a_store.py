"""Two servers on one directory: the second one that has something to keep does not start."""

from __future__ import annotations

from pathlib import Path

from tests.whole.durable.lives import Lives, pipeline


def test_the_second_server_does_not_start_and_the_first_goes_on(tmp_path: Path) -> None:
    lives = Lives(tmp_path, [pipeline()])
    with lives.life() as server:
        assert server.post("p", {"n": 1}).status == 202

        second = lives.run()

        assert second.returncode == 1
        assert "is in use by another process" in second.stderr, second.stderr
        assert str(tmp_path / "data" / "store" / "0") in second.stderr, second.stderr
        assert "Traceback" not in second.stderr
        assert second.stdout == ""
        assert server.post("p", {"n": 2}).status == 202
        lives.wait_until_written([1, 2])
        assert server.stop() == 0
        assert "ERROR" not in str(server.err)

    with lives.life() as server:  # what the second one did has harmed nothing that is kept
        assert server.post("p", {"n": 3}).status == 202
        assert server.stop() == 0
    assert lives.written() == [1, 2, 3]
