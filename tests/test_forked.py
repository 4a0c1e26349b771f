"""A copy of the process that has imported the command is a process as one that was started."""

import os
import signal

import pytest

from tests import forked, server

PIPELINES = [{"id": "p", "inputs": [{"type": "http"}]}]


@pytest.mark.parametrize("arguments", [["--version"], ["check", "."], ["--nonsense"]])
def test_a_command_says_the_same_and_ends_the_same(tmp_path, arguments):
    copied, started = (each(tmp_path, *arguments) for each in (forked.run, server.run))

    assert copied.args == started.args
    assert copied.returncode == started.returncode
    assert (copied.stdout, copied.stderr) == (started.stdout, started.stderr)


def test_a_server_has_a_session_a_folder_and_an_environment_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("DOOR_KEY", "sesame")
    auth = {"type": "bearer", "token": "${DOOR_KEY}"}

    with forked.serving(tmp_path, [{"id": "p", "inputs": [{"type": "http", "auth": auth}]}]) as it:
        own = it.process.pid
        assert os.getsid(own) == own
        assert os.readlink(f"/proc/{own}/cwd") == str(tmp_path)
        assert it.post("p", 1).status == 401
        assert it.stop() == 0


def test_whoever_is_killed_has_ended_by_that_signal(tmp_path):
    with forked.serving(tmp_path, PIPELINES) as it:
        assert it.process.poll() is None
        it.signal(signal.SIGKILL)

        assert it.ended() == -signal.SIGKILL
        it.signal()  # which reaches nobody


def test_two_have_nothing_of_each_other(tmp_path):
    with forked.serving(tmp_path, PIPELINES) as one, forked.serving(tmp_path) as other:
        assert [each["id"] for each in one.get("/api/pipelines").value] == ["p"]
        assert other.get("/api/pipelines").value == []
        assert one.stop() == other.stop() == 0
