"""The `file` output on disks that are full, and in places that cannot be written to."""

import os

import pytest

from tests.file_sides import (
    FIRST,
    MORNING,
    forbidden,
    largest_file,
    lost,
    opened,
    parts,
    tmpfs,
)
from tests.promises import promise
from tests.virtual import virtual

KILOBYTE = "x" * 1021  # with its quotes and a line end


@promise("file.output.away", "file.output.twice")
@pytest.mark.parametrize(
    ("form", "before", "after"),
    [
        ("ndjson", b'"a"\n', b'"a"\n"b"\n'),
        ("json_array", b'["a"]', b'["a","b"]'),
    ],
)
async def test_on_a_full_disk_batches_are_lost_whole_until_there_is_space(
    tmp_path, form, before, after
):
    disk = tmp_path / "disk"
    with tmpfs(disk, 64):
        (disk / "filler").write_bytes(bytes(40 * 1024))
        sink = opened(disk, format=form)
        await sink.write(["a"])

        said = [await lost(sink, [KILOBYTE] * 40) for _ in range(3)]
        [held] = parts(disk).values()
        (disk / "filler").unlink()
        await sink.write(["b"])
        await sink.finish()
        [written] = parts(disk).values()

    assert said == ["writing to 'readings': no space left on device"] * 3
    assert held == before
    assert written == after


@promise("file.output.away")
@pytest.mark.parametrize(
    ("form", "before", "after"),
    [("ndjson", b"1\n", b"1\n2\n"), ("json_array", b"[1]", b"[1,2]")],
)
@virtual
async def test_a_batch_that_breaks_off_leaves_nothing_behind(tmp_path, form, before, after):
    sink = opened(tmp_path, format=form)
    await sink.write([1])

    with largest_file(100):
        said = await lost(sink, ["x" * 200])
    [held] = parts(tmp_path).values()
    await sink.write([2])
    await sink.finish()

    assert said == "writing to 'readings': file too large"
    assert held == before
    assert list(parts(tmp_path).values()) == [after]


@virtual
async def test_a_part_whose_first_batch_breaks_off_is_removed_or_taken_by_the_next(tmp_path):
    removed, taken = opened(tmp_path), opened(tmp_path, path="taken")

    with largest_file(100):
        await lost(removed, ["x" * 200])
        await lost(taken, ["x" * 200])
    await taken.write([2])
    await removed.finish()
    await taken.finish()

    assert parts(tmp_path) == {}
    assert list(parts(tmp_path, "taken").values()) == [b"2\n"]


@pytest.mark.parametrize(("form", "after"), [("ndjson", b"1\n"), ("json_array", b"[1]")])
@virtual
async def test_what_could_not_be_cut_off_at_once_is_cut_off_at_the_end(
    tmp_path, monkeypatch, form, after
):
    def stuck(descriptor: int, length: int) -> None:
        raise OSError(5, "stuck")

    sink = opened(tmp_path, format=form)
    await sink.write([1])

    with largest_file(100), monkeypatch.context() as patched:
        patched.setattr(os, "ftruncate", stuck)
        await lost(sink, ["x" * 200])
    await sink.finish()

    assert list(parts(tmp_path).values()) == [after]


@virtual(started_at=MORNING)
async def test_in_a_directory_that_may_not_be_written_to_batches_are_lost_until_it_may(tmp_path):
    sink = opened(tmp_path)

    with forbidden(tmp_path):
        said = [await lost(sink, [n]) for n in range(3)]
    await sink.write([4])
    await sink.finish()

    assert said == ["writing to 'readings': permission denied"] * 3
    assert parts(tmp_path) == {FIRST: b"4\n"}


@virtual(started_at=MORNING)
async def test_a_file_in_the_place_of_the_directory_fails_the_batch(tmp_path):
    (tmp_path / "readings").write_text("a file")
    sink = opened(tmp_path)

    said = await lost(sink, [1])

    assert said == "writing to 'readings': not a directory"


@virtual(started_at=MORNING)
async def test_a_message_that_cannot_be_written_leaves_the_part_as_it_was(tmp_path):
    sink = opened(tmp_path)
    await sink.write([1])

    with pytest.raises(ValueError, match="surrogate"):
        await sink.write([2, "\ud800"])
    await sink.write([3])
    await sink.finish()

    assert parts(tmp_path) == {FIRST: b"1\n3\n"}
