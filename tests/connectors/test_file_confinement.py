"""The `file` output writes below the data directory and nowhere else."""

import os
from pathlib import Path

import pytest

from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.errors import OutsideRoot
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.file import FileConnection, FileOutput
from tests.doubles import refusals
from tests.file_sides import FIRST, MORNING, context, lost, opened, parts
from tests.virtual import virtual


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
    ("root", "path"), [("{}", "store"), ("{}", "store/0"), ("{}/store", "mine"), ("{}", "link")]
)
def test_nothing_is_written_where_the_store_is(tmp_path, root, path):
    (tmp_path / "store" / "0").mkdir(parents=True)
    (tmp_path / "link").symlink_to("store")
    ctx = context(tmp_path, root=root.format(tmp_path))

    with pytest.raises(OutsideRoot, match="is where the server keeps what is durable"):
        FileOutput.load({"connection": "disk", "path": path}).open(ctx)


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


@pytest.mark.parametrize("path", ["...", "a..b", ".hidden", "a/..b"])
def test_dots_within_a_name_are_no_way_out(path):
    assert refusals(FileOutput, {"connection": "disk", "path": path}) == []
