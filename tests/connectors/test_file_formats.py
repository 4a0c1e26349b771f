"""The `file` output with texts and rows of CSV in its parts."""

import pytest

from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed
from headrace.connectors.file import FileOutput
from headrace.connectors.s3 import S3Output
from tests.doubles import StubContext, refusals
from tests.file_sides import FIRST, MORNING, lost, opened, parts
from tests.virtual import virtual

TEXT = {"format": "text", "template": "{at} {m.temp} °C"}
CSV = {"format": "csv", "csv": {"columns": ["at", "m.temp"]}}
BATCH = [{"at": "08:00", "m": {"temp": 21.5}}, {"at": "=1", "m": {"temp": -3}}]
CONFIGS = [
    (FileOutput, {"connection": "disk", "path": "a"}),
    (S3Output, {"connection": "lake", "prefix": "", "rotate": {"max_rows": 1}}),
]


def named(extension: str, number: int = 1) -> str:
    return FIRST.replace("1.ndjson", f"{number}.{extension}")


@virtual(started_at=MORNING)
async def test_a_text_is_a_line(tmp_path):
    sink = opened(tmp_path, **TEXT)

    await sink.write(BATCH)
    await sink.write(BATCH[:1])
    await sink.finish()

    expected = "08:00 21.5 °C\n=1 -3 °C\n08:00 21.5 °C\n"
    assert parts(tmp_path) == {named("txt"): expected.encode()}


@virtual(started_at=MORNING)
async def test_a_batch_with_a_message_without_a_field_is_lost_whole(tmp_path):
    sink = opened(tmp_path, **TEXT)

    await sink.write(BATCH[:1])
    said = await lost(sink, [*BATCH, {"at": "08:01"}])
    await sink.write(BATCH[1:])
    await sink.finish()

    assert said == "field 'm.temp' is missing or null"
    assert parts(tmp_path) == {named("txt"): "08:00 21.5 °C\n=1 -3 °C\n".encode()}


@virtual(started_at=MORNING)
async def test_each_part_of_csv_begins_with_the_header(tmp_path):
    sink = opened(tmp_path, **CSV, rotate={"max_rows": 2})

    await sink.write(BATCH[:1])
    await sink.write(BATCH[1:])
    await sink.write(BATCH[1:])
    await sink.finish()

    assert parts(tmp_path) == {
        named("csv"): b'at,m.temp\n08:00,21.5\n"=1",-3\n',
        named("csv", 2): b'at,m.temp\n"=1",-3\n',
    }


@virtual(started_at=MORNING)
async def test_without_a_header_there_are_rows_alone(tmp_path):
    sink = opened(
        tmp_path, format="csv", csv={"columns": ["m.temp", "x"], "header": False, "separator": ";"}
    )

    await sink.write(BATCH)
    await sink.finish()

    assert parts(tmp_path) == {named("csv"): b"21.5;\n-3;\n"}


@virtual(started_at=MORNING)
async def test_a_first_batch_that_cannot_be_written_leaves_no_second_header(tmp_path):
    sink = opened(tmp_path, **CSV)

    with pytest.raises(UnicodeEncodeError):
        await sink.write([{"at": "\ud800"}])
    await sink.write(BATCH[:1])
    await sink.finish()

    assert parts(tmp_path) == {named("csv"): b"at,m.temp\n08:00,21.5\n"}


@pytest.mark.parametrize("options", [TEXT, CSV], ids=["text", "csv"])
@virtual(started_at=MORNING)
async def test_a_large_batch_is_written_as_small_ones_are(tmp_path, options):
    large = BATCH * LARGE_BATCH
    at_once, apart = opened(tmp_path, **options), opened(tmp_path, path="apart", **options)

    await at_once.write(large)
    for start in range(0, len(large), 1000):
        await apart.write(large[start : start + 1000])
    await at_once.finish()
    await apart.finish()

    assert parts(tmp_path) == parts(tmp_path, "apart")


@pytest.mark.parametrize(("kind", "options"), CONFIGS, ids=["file", "s3"])
@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"format": "text"}, "format: 'format: text' needs 'template'"),
        ({"format": "csv"}, "format: 'format: csv' needs 'csv'"),
        ({"template": "{a}"}, "template: 'template' says nothing to 'format: ndjson'"),
        (
            {"csv": {"columns": ["a"]}, "format": "json_array"},
            "csv: 'csv' says nothing to 'format: json_array'",
        ),
        ({**TEXT, "csv": {"columns": ["a"]}}, "csv: 'csv' says nothing to 'format: text'"),
        ({**TEXT, "template": "{"}, "template: a '{' is not closed: character 1"),
        ({**CSV, "csv": {"columns": []}}, "csv.columns: expected "),
    ],
)
def test_what_a_format_needs_is_given_with_it_and_with_no_other(kind, options, more, refusal):
    [found] = refusals(kind, options | more)

    assert found.startswith(refusal)


@pytest.mark.parametrize(("kind", "options"), CONFIGS, ids=["file", "s3"])
def test_what_is_read_and_fits_is_known(kind, options):
    text, table = kind.load(options | TEXT), kind.load(options | CSV)
    fits = text.fits(StubContext())

    assert kind.load(options).field_use() == FieldUse.unknown()
    assert kind.load(options).fits(StubContext()) is None
    assert text.field_use() == table.field_use() == FieldUse.of(reads=["at", "m.temp"])
    fits(BATCH)
    table.fits(StubContext())([{}])
    with pytest.raises(BatchFailed):
        fits([{}])
