"""Of which class is what the `file` output tells of its disk, tried on file systems."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace.connectors.disk.packing import PACKINGS
from headrace.connectors.disk.systemfailures import FAILURES, failure_of
from headrace.connectors.file import FileOutput
from tests.file_sides import (
    MORNING,
    context,
    failure,
    forbidden,
    largest_file,
    make_read_only,
    opened,
    parts,
    tmpfs,
)
from tests.promises import promise
from tests.virtual import virtual


@promise("file.output.fails.full")
async def test_a_full_disk_is_unavailable(tmp_path):
    disk = tmp_path / "disk"
    with tmpfs(disk, 64):
        sink = opened(disk)
        cause = await failure(sink, ["x" * 1021] * 80)
        await sink.write([1])
        await sink.finish()
        [written] = parts(disk).values()

    assert (str(cause), cause.failure) == (
        "writing to 'readings': no space left on device",
        "unavailable",
    )
    assert written == b"1\n"


@promise("file.output.fails.read_only")
async def test_a_file_system_that_is_read_only_is_for_somebody_to_change(tmp_path):
    disk = tmp_path / "disk"
    with tmpfs(disk, 64):
        sink = opened(disk)
        make_read_only(disk)
        cause = await failure(sink, [1])

    assert (str(cause), cause.failure) == (
        "writing to 'readings': read-only file system",
        "misconfigured",
    )


@promise("file.output.fails.denied")
async def test_a_directory_that_may_not_be_written_to_is_for_somebody_to_open(tmp_path):
    sink = opened(tmp_path)
    with forbidden(tmp_path):
        cause = await failure(sink, [1])

    assert cause.failure == "misconfigured"


@promise("file.output.fails.no_directory")
async def test_what_was_removed_or_replaced_is_for_somebody_to_make(tmp_path):
    (tmp_path / "gone").mkdir()
    (tmp_path / "there").mkdir()
    gone, replaced = opened(tmp_path / "gone"), opened(tmp_path / "there")
    (tmp_path / "gone").rmdir()
    (tmp_path / "there" / "readings").write_text("a file")

    causes = [await failure(sink, [1]) for sink in (gone, replaced)]

    assert [(str(each), each.failure) for each in causes] == [
        ("writing to 'readings': no such file or directory", "misconfigured"),
        ("writing to 'readings': not a directory", "misconfigured"),
    ]


@promise("file.output.fails.file_size")
async def test_a_part_that_is_larger_than_files_may_be_is_for_somebody_to_allow(tmp_path):
    sink = opened(tmp_path)
    with largest_file(100):
        cause = await failure(sink, ["x" * 200])
    await sink.finish()

    assert (str(cause), cause.failure) == ("writing to 'readings': file too large", "misconfigured")


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open no more files than are open."""
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)


@promise("file.output.fails.open_files")
async def test_that_too_many_files_are_open_is_unavailable(tmp_path):
    sink = opened(tmp_path)
    with no_more_files():
        cause = await failure(sink, [1])
    await sink.write([2])
    await sink.finish()

    assert (str(cause), cause.failure) == (
        "writing to 'readings': too many open files",
        "unavailable",
    )
    assert list(parts(tmp_path).values()) == [b"2\n"]


@pytest.mark.parametrize("compression", ["none", *PACKINGS])
@virtual(started_at=MORNING)
async def test_a_part_that_cannot_be_closed_has_the_class_of_what_was_in_the_way(
    tmp_path, compression
):
    ctx = context(tmp_path)
    options = {"connection": "disk", "path": "readings", "compression": compression}
    sink = FileOutput.load(options).open(ctx)
    await sink.write([1])
    [part] = (tmp_path / "readings").iterdir()
    part.unlink()
    await sink.finish()
    await sink.write([2])
    if compression != "none":
        with largest_file(1):
            await sink.finish()
    await sink.finish()

    removed = "closing a part of 'readings': it was removed while it was written"
    squeezed = "closing a part of 'readings': it stays uncompressed: file too large"
    assert ctx.failures == ([removed] if compression == "none" else [removed, squeezed])
    assert set(ctx.classes) == {"misconfigured"}


def test_each_number_has_the_class_of_its_row_and_others_are_no_matter_of_the_disk():
    numbers = [errno.EDQUOT, errno.EIO, errno.EPERM, errno.EINVAL]

    assert [failure_of(OSError(number, "")) for number in numbers] == [
        "unavailable",
        "unavailable",
        "misconfigured",
        "invalid",
    ]
    assert FAILURES.of("EROFS") == "misconfigured"
