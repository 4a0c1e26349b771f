"""The `file` output: names and formats of its parts, and its config."""

import shutil
from datetime import UTC, datetime

import pytest

from headrace.connectors.file import FileConnection, FileOutput
from tests.doubles import refusals
from tests.file_sides import FIRST, MORNING, context, opened, parts
from tests.promises import promise
from tests.virtual import virtual


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


@promise("file.output.written")
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
            'format: expected one of ndjson, json_array, text, csv, found "json"',
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
