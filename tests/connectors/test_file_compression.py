"""The `file` output with `compression`: parts are compressed once they are closed, whole or not at all."""

import asyncio
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from headrace.connectors.disk import packing
from headrace.connectors.file import FileOutput
from tests.doubles import refusals
from tests.file_sides import FIRST, MORNING, opened, parts, tmpfs
from tests.rooms import REPOSITORY
from tests.virtual import virtual
from tests.waiting import until

GZIP = {"compression": "gzip"}
WAYS = pytest.mark.parametrize(
    ("word", "extension", "unpacked"),
    [
        ("gzip", "gz", gzip.decompress),
        ("zstd", "zst", lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body)),
    ],
)


def packed(number: int = 1, extension: str = "gz") -> str:
    return f"{FIRST.replace('1.ndjson', f'{number}.ndjson')}.{extension}"


@WAYS
@virtual(started_at=MORNING)
async def test_a_part_is_compressed_when_it_is_closed(tmp_path, word, extension, unpacked):
    sink = opened(tmp_path, compression=word, rotate={"max_rows": 2000})

    for start in range(0, 2000, 500):
        await sink.write([{"n": n} for n in range(start, start + 500)])
    await sink.finish()

    [(name, body)] = parts(tmp_path).items()
    assert name == packed(1, extension)
    assert len(body) < 10_000
    assert unpacked(body) == b"".join(b'{"n":%d}\n' % n for n in range(2000))
    assert sink._ctx.failures == []


@virtual(started_at=MORNING)
async def test_until_then_it_is_a_file_as_any_other(tmp_path):
    sink = opened(tmp_path, **GZIP)

    await sink.write([1])
    await sink.write([2])

    assert parts(tmp_path) == {FIRST: b"1\n2\n"}
    await sink.finish()
    assert gzip.decompress(parts(tmp_path)[packed()]) == b"1\n2\n"


@WAYS
@virtual(started_at=MORNING)
async def test_the_same_messages_are_the_same_bytes(tmp_path, word, extension, unpacked):
    for path in ("one", "two"):
        sink = opened(tmp_path, path=path, compression=word)
        await sink.write([1, 2])
        await sink.finish()

    assert parts(tmp_path, "one") == parts(tmp_path, "two")


@virtual(started_at=MORNING)
async def test_an_array_and_rows_of_csv_are_compressed_as_they_are_written(tmp_path):
    array = opened(tmp_path, path="array", format="json_array", **GZIP)
    table = opened(tmp_path, path="table", format="csv", csv={"columns": ["n"]}, **GZIP)
    for sink in (array, table):
        await sink.write([{"n": 1}])
        await sink.write([{"n": 2}])
        await sink.finish()

    found = {**parts(tmp_path, "array"), **parts(tmp_path, "table")}
    assert {name.partition(".")[2]: gzip.decompress(body) for name, body in found.items()} == {
        "json.gz": b'[{"n":1},{"n":2}]',
        "csv.gz": b"n\n1\n2\n",
    }


@virtual(started_at=MORNING)
async def test_a_run_without_messages_leaves_nothing(tmp_path):
    sink = opened(tmp_path, **GZIP)

    await sink.start()
    await sink.finish()

    assert list(tmp_path.iterdir()) == []


@virtual(started_at=MORNING)
async def test_two_outputs_of_one_directory_overwrite_nothing(tmp_path):
    one, two = opened(tmp_path, **GZIP), opened(tmp_path, **GZIP)

    await one.write([1])
    await one.finish()
    await two.write([2])
    await two.finish()

    found = {name: gzip.decompress(body) for name, body in parts(tmp_path).items()}
    assert found == {packed(1): b"1\n", packed(2): b"2\n"}


@virtual(started_at=MORNING)
async def test_what_somebody_else_has_put_there_stays_and_so_does_the_part(tmp_path):
    sink = opened(tmp_path, **GZIP)
    await sink.write([1])
    (tmp_path / "readings" / packed()).write_text("there")

    await sink.finish()

    assert parts(tmp_path) == {FIRST: b"1\n", packed(): b"there"}
    assert sink._ctx.failures == [
        f"closing a part of 'readings': it stays uncompressed: there is another '{packed()}'"
    ]


async def test_on_a_full_disk_a_part_stays_as_it_is(tmp_path):
    disk = tmp_path / "disk"
    with tmpfs(disk, 256):
        sink = opened(disk, **GZIP)
        await sink.write([os.urandom(90_000).hex()])  # does not become much smaller

        (disk / "filler").write_bytes(bytes(24 * 1024))
        await sink.finish()
        [(name, body)] = parts(disk).items()

    assert name.endswith(".ndjson")
    assert len(body) == 180_003
    assert sink._ctx.failures == [
        "closing a part of 'readings': it stays uncompressed: no space left on device"
    ]


async def test_what_takes_too_long_at_the_end_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "PIECE", 1)
    sink = opened(tmp_path, **GZIP)
    await sink.write(["x" * 1_000_000])

    finishing = asyncio.ensure_future(sink.finish())
    await until(lambda: any(name.endswith(".tmp") for name in parts(tmp_path)))
    finishing.cancel()
    await until(lambda: not sink._closing)

    [(name, body)] = parts(tmp_path).items()
    assert name.endswith(".ndjson")
    assert len(body) == 1_000_003
    assert sink._ctx.failures == [
        "closing a part of 'readings': it stays uncompressed: the pipeline had to end"
    ]


KILLED = """
import asyncio, pathlib, sys
from headrace.connectors.disk import packing
from tests.file_sides import opened

async def write():
    packing.PIECE = 1
    sink = opened(pathlib.Path(sys.argv[1]), compression="gzip")
    for n in range(1000):
        await sink.write([{"n": n, "x": "x" * 1000}])
        print(n, flush=True)
    if sys.argv[2] == "closing":
        await sink.finish()
    await asyncio.Event().wait()

asyncio.run(write())
"""


def writing(folder: Path, phase: str) -> subprocess.Popen[str]:
    """Start what writes to a folder, tells of each batch, and in the end closes the part or waits."""
    command = [sys.executable, "-c", KILLED, str(folder), phase]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
@pytest.mark.parametrize("phase", ["writing", "closing"])
async def test_after_a_kill_everything_that_was_written_is_there_and_can_be_read(tmp_path, phase):
    with writing(tmp_path, phase) as process:
        assert process.stdout is not None
        last = next(line for line in process.stdout if phase == "writing" or line == "999\n")
        if phase == "closing":
            await until(lambda: any(name.endswith(".tmp") for name in parts(tmp_path)))
        process.send_signal(signal.SIGKILL)
        confirmed = [int(last), *map(int, process.stdout)][-1] + 1

    found = parts(tmp_path)
    [plain] = (name for name in found if name.endswith(".ndjson"))
    assert not any(name.endswith(".gz") for name in found)
    assert len(found) == 1 + (phase == "closing")
    lines = found[plain].splitlines(keepends=True)
    assert confirmed <= len(lines) <= confirmed + 1
    assert all(line.endswith(b'"}\n') for line in lines)

    sink = opened(tmp_path, **GZIP)
    await sink.write([1])
    await sink.finish()

    after = parts(tmp_path)
    [made] = after.keys() - found.keys()
    assert gzip.decompress(after[made]) == b"1\n"
    assert {name: after[name] for name in found} == found


def test_what_is_refused():
    document = {"connection": "disk", "path": "a", "compression": "brotli"}

    assert refusals(FileOutput, document) == [
        'compression: expected one of none, gzip, zstd, found "brotli"'
    ]
