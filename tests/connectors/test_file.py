"""The `file` connection and output, on real directories."""

import asyncio
import os
import resource
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.errors import BatchFailed, OutsideRoot
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.file import FileConnection, FileOutput, FileSink
from tests.doubles import StubContext, refusals
from tests.virtual import virtual

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
FIRST = "2026-03-01T08-00-00Z-000001.ndjson"


def context(data_dir: Path | None, root: str | Path | None = None) -> StubContext:
    """Return a context with one connection, `disk`, that names the data directory itself."""
    connection = FileConnection.load({"root": str(root or data_dir)})
    return StubContext(data_dir=data_dir, connections={"disk": connection})


def opened(data_dir: Path, **options) -> FileSink:
    """Return a sink that writes to `readings` under the data directory."""
    config = FileOutput.load({"connection": "disk", "path": "readings", **options})
    sink = config.open(context(data_dir))
    assert isinstance(sink, FileSink)
    return sink


def parts(data_dir: Path, path: str = "readings") -> dict[str, bytes]:
    """Return what lies there: names in order, with their bytes."""
    return {file.name: file.read_bytes() for file in sorted((data_dir / path).iterdir())}


@pytest.fixture
def synced(monkeypatch) -> list[threading.Thread]:
    """Give the threads that synced something to the disk, in order."""
    threads = []
    real = os.fsync

    def spy(descriptor: int) -> None:
        threads.append(threading.current_thread())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    return threads


# Names and formats


@virtual(started_at=MORNING)
async def test_ndjson_is_one_compact_message_a_line(tmp_path):
    sink = opened(tmp_path)

    await sink.write([{"n": 1, "s": "ü"}, 2.0])
    await sink.write([None])
    await sink.finish()

    assert parts(tmp_path) == {FIRST: '{"n":1,"s":"ü"}\n2.0\nnull\n'.encode()}


@virtual(started_at=MORNING)
async def test_a_json_array_is_compact_and_whole_after_every_batch(tmp_path):
    sink, seen = opened(tmp_path, format="json_array"), []

    for batch in ([{"n": 1}, {"n": 2}], [3]):
        await sink.write(batch)
        seen += parts(tmp_path).items()
    await sink.finish()

    name = "2026-03-01T08-00-00Z-000001.json"
    assert seen == [(name, b'[{"n":1},{"n":2}]'), (name, b'[{"n":1},{"n":2},3]')]
    assert parts(tmp_path) == {name: b'[{"n":1},{"n":2},3]'}


@virtual(started_at=MORNING)
async def test_a_batch_can_be_read_as_soon_as_it_is_written(tmp_path):
    sink = opened(tmp_path)

    await sink.write([1])

    assert parts(tmp_path) == {FIRST: b"1\n"}
    await sink.finish()


@virtual
async def test_a_run_without_messages_leaves_no_file_and_no_directory(tmp_path):
    sink = opened(tmp_path)

    await sink.start()
    await sink.write([])
    await sink.finish()

    assert list(tmp_path.iterdir()) == []


@virtual(started_at=MORNING)
async def test_directories_on_the_way_are_made(tmp_path):
    sink = opened(tmp_path, path="a/b//c/")

    await sink.write([1])
    await sink.finish()

    assert parts(tmp_path, "a/b/c") == {FIRST: b"1\n"}


@virtual(started_at=datetime(2026, 3, 1, 8, 0, 59, 999999, tzinfo=UTC))
async def test_a_part_is_named_for_the_second_in_which_it_was_opened(tmp_path):
    sink = opened(tmp_path)

    await sink.write([1])
    await sink.finish()

    assert list(parts(tmp_path)) == ["2026-03-01T08-00-59Z-000001.ndjson"]


@virtual(started_at=MORNING)
async def test_a_name_that_is_taken_gives_way_to_the_next_number(tmp_path):
    (tmp_path / "readings").mkdir()
    (tmp_path / "readings" / FIRST).write_text("there")
    (tmp_path / "readings" / FIRST.replace("1.nd", "2.nd")).symlink_to("/nowhere")
    sink = opened(tmp_path, rotate={"max_rows": 1})

    await sink.write([1])
    await sink.write([2])
    await sink.finish()

    readings = tmp_path / "readings"
    assert (readings / FIRST).read_text() == "there"
    assert (readings / FIRST.replace("1.nd", "3.nd")).read_text() == "1\n"
    assert (readings / FIRST.replace("1.nd", "4.nd")).read_text() == "2\n"


@virtual(started_at=MORNING)
async def test_two_outputs_may_write_to_one_directory(tmp_path):
    one, two = opened(tmp_path), opened(tmp_path)

    await one.write([1])
    await two.write([2])
    await one.finish()
    await two.finish()

    assert parts(tmp_path) == {FIRST: b"1\n", FIRST.replace("1.nd", "2.nd"): b"2\n"}


@virtual(started_at=MORNING)
async def test_a_directory_that_is_gone_is_made_again_for_the_next_part(tmp_path):
    sink = opened(tmp_path, rotate={"max_rows": 1})
    await sink.write([1])
    await sink.finish()
    (tmp_path / "readings" / FIRST).unlink()
    (tmp_path / "readings").rmdir()

    await sink.write([2])
    await sink.finish()

    assert parts(tmp_path) == {FIRST.replace("1.nd", "2.nd"): b"2\n"}


@virtual(started_at=MORNING)
async def test_a_part_that_somebody_removes_is_reported_and_the_next_batch_opens_another(tmp_path):
    sink = opened(tmp_path)
    said = sink._ctx.failures
    await sink.write([1])
    shutil.rmtree(tmp_path / "readings")

    await sink.write([2])
    (tmp_path / "readings" / "2026-03-01T08-00-00Z-000002.ndjson").rename(tmp_path / "moved")
    await sink.write([3])
    (tmp_path / "moved").unlink()
    await sink.finish()

    assert parts(tmp_path) == {}
    assert said == ["closing a part of 'readings': it was removed while it was written"] * 2


# Rotation


@virtual(started_at=MORNING)
async def test_a_part_is_closed_after_the_batch_that_fills_it(tmp_path):
    sink = opened(tmp_path, rotate={"max_rows": 3})

    for batch in ([1, 2], [3, 4, 5, 6], [7], [8], [9], [10]):
        await sink.write(batch)
    await sink.finish()

    assert parts(tmp_path) == {
        "2026-03-01T08-00-00Z-000001.ndjson": b"1\n2\n3\n4\n5\n6\n",
        "2026-03-01T08-00-00Z-000002.ndjson": b"7\n8\n9\n",
        "2026-03-01T08-00-00Z-000003.ndjson": b"10\n",
    }


@virtual(started_at=MORNING)
async def test_no_rows_are_read_as_one(tmp_path):
    sink = opened(tmp_path, rotate={"max_rows": 0}, format="json_array")

    await sink.write([1])
    await sink.write([2, 3])
    await sink.finish()

    assert list(parts(tmp_path).values()) == [b"[1]", b"[2,3]"]


@virtual(started_at=MORNING)
async def test_a_part_is_closed_on_time_also_while_nothing_arrives(tmp_path, synced):
    ctx = context(tmp_path)
    config = {"connection": "disk", "path": "readings", "rotate": {"interval_secs": 60}}
    sink = FileOutput.load(config).open(ctx)

    await ctx.clock.sleep(10)
    await sink.write([1])
    await ctx.clock.sleep(59)
    await sink.write([2])
    before = len(synced)
    await ctx.clock.sleep(2)
    after = len(synced)
    await ctx.clock.sleep(3600)
    await sink.write([3])
    await sink.finish()

    assert (before, after) == (0, 2)  # the file and its directory
    assert parts(tmp_path) == {
        "2026-03-01T08-00-10Z-000001.ndjson": b"1\n2\n",
        "2026-03-01T09-01-11Z-000002.ndjson": b"3\n",
    }


@virtual(started_at=MORNING)
async def test_the_time_runs_from_the_opening_of_each_part(tmp_path):
    ctx = context(tmp_path)
    rotate = {"interval_secs": 60, "max_rows": 2}
    sink = FileOutput.load({"connection": "disk", "path": "readings", "rotate": rotate}).open(ctx)

    await sink.write([1])
    await ctx.clock.sleep(50)
    await sink.write([2])  # full: the first clock stops
    await sink.write([3])
    await ctx.clock.sleep(50)
    await sink.write([4])
    await ctx.clock.sleep(11)
    await sink.write([5])
    await ctx.clock.sleep(59)
    await sink.finish()

    assert list(parts(tmp_path).values()) == [b"1\n2\n", b"3\n4\n", b"5\n"]


@virtual(started_at=MORNING)
async def test_without_limits_a_part_lasts_as_long_as_the_run(tmp_path):
    ctx = context(tmp_path)
    config = {"connection": "disk", "path": "readings", "rotate": {}}
    sink = FileOutput.load(config).open(ctx)

    for n in range(50):
        await sink.write([n])
        await ctx.clock.sleep(86400)
    await sink.finish()

    assert list(parts(tmp_path)) == [FIRST]


# Closing


@virtual
async def test_what_is_closed_is_on_the_disk_and_the_loop_did_not_wait_for_that(tmp_path, synced):
    sink = opened(tmp_path, rotate={"max_rows": 1})

    await sink.write([1])
    await sink.finish()

    assert len(synced) == 2  # the file and its directory
    assert threading.main_thread() not in synced


async def test_a_disk_that_does_not_keep_up_holds_up_its_own_output(tmp_path, monkeypatch):
    disk = threading.Event()
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: disk.wait(30) and real(descriptor))
    sink = opened(tmp_path, rotate={"max_rows": 1})

    for n in range(4):
        await sink.write([n])
    fifth = asyncio.create_task(sink.write([4]))
    for _ in range(100):
        await asyncio.sleep(0)
    waited = not fifth.done()
    disk.set()
    await fifth
    await sink.finish()

    assert waited
    assert list(parts(tmp_path).values()) == [b"0\n", b"1\n", b"2\n", b"3\n", b"4\n"]


async def test_no_descriptor_is_left_open(tmp_path):
    sink = opened(tmp_path, rotate={"max_rows": 2})  # which holds the data directory
    before = os.listdir("/dev/fd")

    for n in range(7):
        await sink.write([n])
    await sink.finish()

    assert os.listdir("/dev/fd") == before


async def test_a_part_that_cannot_be_synced_is_reported(tmp_path, monkeypatch):
    def broken(_: int) -> None:
        raise OSError(5, "never shown")

    monkeypatch.setattr(os, "fsync", broken)
    ctx = context(tmp_path)
    sink = FileOutput.load({"connection": "disk", "path": "readings"}).open(ctx)

    await sink.write([1])
    await sink.finish()

    assert ctx.failures == ["closing a part of 'readings': input/output error"]


# Failing


@contextmanager
def tmpfs(folder: Path, kilobytes: int) -> Iterator[None]:
    """Mount a small file system of its own."""
    folder.mkdir()
    size = f"size={kilobytes}k"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a file system needs privileges")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size``: what is written ends in the middle, as on a full disk."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


async def lost(sink: FileSink, batch: list) -> str:
    """Return what is said of a batch that cannot be written."""
    with pytest.raises(BatchFailed) as failed:
        await sink.write(batch)
    return str(failed.value)


KILOBYTE = "x" * 1021  # with its quotes and a line end


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


@contextmanager
def forbidden(folder: Path) -> Iterator[None]:
    """Make a directory one that may not be written to, also where the tests run as root."""
    folder.chmod(0o500)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)


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


# Confinement


def refused(data_dir: Path | None, root: str | Path, path: str = "readings") -> Fault:
    """Return why the output is refused at build."""
    config = FileOutput.load({"connection": "disk", "path": path})
    with pytest.raises(OutsideRoot) as cause:
        config.open(context(data_dir, root))
    return cause.value.fault


def test_a_server_without_a_data_directory_writes_no_files(tmp_path):
    assert refused(None, tmp_path) == Fault(
        "outside-root",
        "this server writes no files: it was started without --data-dir",
        expected="--data-dir DIRECTORY on the command line",
    )


@pytest.mark.parametrize("root", ["/", "{}/..", "{}/../data-2", "{}/link", "{}/link/there"])
def test_a_root_outside_the_data_directory_is_refused(tmp_path, root):
    data = tmp_path / "data"
    (tmp_path / "data-2" / "there").mkdir(parents=True)
    data.mkdir()
    (data / "link").symlink_to("../data-2")
    root = root.format(data)

    assert refused(data, root) == Fault(
        "outside-root",
        f"connection 'disk': the root '{root}' is '{os.path.realpath(root)}', and leads out of"
        f" --data-dir, which is '{data}'",
        found=root,
        expected=f"a directory inside '{data}'",
        path=("connection",),
    )


@pytest.mark.parametrize(
    ("root", "meant"),
    [
        ("archive", "data/archive"),
        ("../archive", "data/archive"),
        (".", "data"),
        ("a/../b", "data/b"),
    ],
)
def test_a_relative_root_outside_is_told_with_the_spelling_that_would_do(
    tmp_path, monkeypatch, root, meant
):
    monkeypatch.chdir(tmp_path)
    context = CheckContext(data_dir=Path("data"))

    [fault] = FileConnection(root=root).examine(context)

    top, base = os.path.realpath(root), tmp_path / "data"
    assert fault == Fault(
        "outside-root",
        f"the root '{root}' is '{top}', and leads out of --data-dir, which is '{base}'",
        found=root,
        expected=f"a directory inside '{base}'",
        suggestion=f"write '{meant}': a relative root starts at the working directory",
        path=("root",),
    )
    assert [*FileConnection(root=meant).examine(context)] == []
    assert [*FileConnection(root=root).examine(CheckContext())] == []


def test_a_data_directory_elsewhere_is_spelt_in_full(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    [fault] = FileConnection(root="archive").examine(CheckContext(data_dir=tmp_path / "data"))

    assert f"write '{tmp_path / 'data' / 'archive'}'" in str(fault.suggestion)


@pytest.mark.parametrize("path", ["link", "link/new", "inner/link", "inner/link/a/b"])
def test_a_link_out_of_the_root_is_refused_and_nothing_is_made(tmp_path, path):
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (root / "link").symlink_to("../elsewhere")
    (root / "inner" / "link").symlink_to(tmp_path / "elsewhere")

    fault = refused(tmp_path, root, path)

    assert fault == Fault(
        "outside-root",
        f"a link leads '{path}' out of the root of connection 'disk'",
        found=path,
        expected=f"a directory inside '{root}'",
        path=("path",),
    )
    assert list((tmp_path / "elsewhere").iterdir()) == []


@virtual(started_at=MORNING)
async def test_a_link_that_stays_inside_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    sink = opened(tmp_path, path="link/deep")

    await sink.write([1])
    await sink.finish()

    assert parts(tmp_path, "real/deep") == {FIRST: b"1\n"}


@virtual(started_at=MORNING)
async def test_the_data_directory_may_be_reached_through_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "data").symlink_to("real")
    sink = opened(tmp_path / "data")

    await sink.write([1])
    await sink.finish()

    assert parts(tmp_path / "real") == {FIRST: b"1\n"}


@virtual(started_at=MORNING)
async def test_a_link_put_there_after_the_build_is_not_followed(tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    (data / "a").mkdir(parents=True)
    elsewhere.mkdir()
    sink = opened(data, path="a/b")
    (data / "a").rename(data / "was-a")
    (data / "a").symlink_to(elsewhere)

    said = await lost(sink, [1])

    assert said == "writing to 'a/b': not a directory"
    assert list(elsewhere.iterdir()) == []


@virtual(started_at=MORNING)
async def test_a_data_directory_that_is_exchanged_for_a_link_is_written_to_where_it_went(tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data.mkdir()
    elsewhere.mkdir()
    sink = opened(data, path="a/b", rotate={"max_rows": 1})
    await sink.write([1])
    data.rename(tmp_path / "moved")
    data.symlink_to(elsewhere)

    await sink.write([2])
    await sink.finish()

    assert list(elsewhere.iterdir()) == []
    assert [*parts(tmp_path / "moved", "a/b").values()] == [b"1\n", b"2\n"]


def test_what_took_the_place_of_the_data_directory_is_no_data_directory(tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data.mkdir()
    elsewhere.mkdir()
    ctx = context(data)
    data.rename(tmp_path / "moved")
    data.symlink_to(elsewhere)

    with pytest.raises(OutsideRoot, match="leads out of --data-dir"):
        FileOutput.load({"connection": "disk", "path": "readings"}).open(ctx)


@virtual(started_at=MORNING)
async def test_where_the_data_directory_is_gone_batches_fail(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    sink = opened(data)
    data.rmdir()
    data.mkdir()  # another one

    assert await lost(sink, [1]) == "writing to 'readings': no such file or directory"
    assert list(data.iterdir()) == []


@virtual(started_at=MORNING)
async def test_a_relative_root_is_taken_from_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ctx = context(tmp_path, "out")
    sink = FileOutput.load({"connection": "disk", "path": "readings"}).open(ctx)

    await sink.write([1])
    await sink.finish()

    assert parts(tmp_path, "out/readings") == {FIRST: b"1\n"}


def test_building_makes_and_opens_nothing(tmp_path):
    opened(tmp_path)

    assert list(tmp_path.iterdir()) == []


INNER = "expected a relative path without '.' and '..', found "


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({}, "path: this key is required"),
        ({"path": " "}, "path: this must not be blank"),
        ({"path": "/etc"}, f'path: {INNER}"/etc"'),
        ({"path": "../up"}, f'path: {INNER}"../up"'),
        ({"path": "a/../b"}, f'path: {INNER}"a/../b"'),
        ({"path": "a/.."}, f'path: {INNER}"a/.."'),
        ({"path": "."}, f'path: {INNER}"."'),
        ({"path": "a/./b"}, f'path: {INNER}"a/./b"'),
        ({"path": "a\0b"}, "path: a path holds no NUL character"),
        (
            {"path": "a", "format": "json"},
            'format: expected one of ndjson, json_array, found "json"',
        ),
        (
            {"path": "a", "rotate": {"interval_secs": 0}},
            "rotate.interval_secs: "
            "expected an integer of at least 1 and of at most 1000000000, found 0",
        ),
        (
            {"path": "a", "rotate": {"max_rows": -1}},
            "rotate.max_rows: "
            "expected an integer of at least 0 and of at most 1000000000, found -1",
        ),
        (
            {"path": "a", "rotate": {"max_row": 1}},
            "rotate.max_row: unknown key 'max_row'",
        ),
    ],
)
def test_what_it_refuses(options, refusal):
    assert refusals(FileOutput, {"connection": "disk", **options}) == [refusal]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({}, "root: this key is required"),
        ({"root": ""}, "root: this must not be blank"),
        ({"root": "a\0"}, "root: a path holds no NUL character"),
    ],
)
def test_what_its_connection_refuses(options, refusal):
    assert refusals(FileConnection, options) == [refusal]


@pytest.mark.parametrize("path", ["...", "a..b", ".hidden", "a/..b"])
def test_dots_within_a_name_are_no_way_out(path):
    assert refusals(FileOutput, {"connection": "disk", "path": path}) == []
