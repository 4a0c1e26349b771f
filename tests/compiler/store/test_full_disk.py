"""The disk is full: nothing new is taken until there is room, and all else goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiler.store import fulldisk
from tests.rooms import REPOSITORY
from tests.whole.stores.cramped import Disk

MEBIBYTES = 48


@pytest.mark.skipif("sys.platform != 'linux'", reason="needs namespaces")
@pytest.mark.parametrize(
    "what",
    [
        fulldisk.nothing_is_taken_until_there_is_room,
        fulldisk.a_part_of_the_disk_is_kept_free,
        fulldisk.a_store_opens_on_a_full_disk,
        fulldisk.a_store_without_a_reserve_opens_on_a_full_disk,
        fulldisk.what_may_have_ended_the_process_is_handed_out_alone_on_a_full_disk,
        fulldisk.what_is_let_go_of_in_part_is_given_back_on_a_full_disk,
        fulldisk.what_is_remembered_is_written_when_there_is_room,
        fulldisk.letters_are_refused_and_deleted_on_a_full_disk,
        fulldisk.history_goes_on_in_memory_and_is_written_when_there_is_room,
    ],
    ids=lambda what: f"tmpfs-{what.__name__}",
)
def test_on_a_full_disk(tmp_path: Path, what: object) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    command = [sys.executable, "-m", fulldisk.__name__, what.__name__, str(place)]
    ended = subprocess.run(
        Disk(place, MEBIBYTES).under(command), cwd=REPOSITORY, capture_output=True, text=True
    )

    assert (ended.returncode, ended.stderr) == (0, "")
