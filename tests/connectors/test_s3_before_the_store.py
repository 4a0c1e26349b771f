"""What lies where parts were kept before there was a store: it is sent, and then the folder goes.

What is no part there is told of, left alone, and in nobody's way.
"""

from __future__ import annotations

import os
import stat

import pytest

from headrace.compiler.clock import Clock
from headrace.connectors.s3.objectpart import Declined, ObjectPart
from tests.partsinmemory import PartsInMemory
from tests.s3_keeping import (
    FIRST,
    LEFT_BY_THE_FOLDER,
    MORNING,
    SECOND,
    entry,
    files,
    left_before,
    opened,
    unsent,
)
from tests.s3_sides import Shop, context
from tests.virtual import virtual

UNSENDABLE = "some of what an earlier run has kept cannot be sent"


@virtual(started_at=MORNING)
async def test_what_was_left_before_is_sent_at_the_first_start_and_the_folder_goes(tmp_path):
    left_before(tmp_path)

    sink, shop, ctx = await opened(tmp_path)
    await sink.write(["new"])
    await sink.finish()

    third = "p/2026-03-01T08-00-00Z-000003.ndjson"
    assert shop.objects == {FIRST: b"0\n1\n", SECOND: b"2\n", third: b'"new"\n'}
    assert [part.token for part in shop.parts if part.key == FIRST] == [
        "79dfcbfccab74c3ab2b9477c633e2d96"
    ]
    assert [*tmp_path.iterdir()] == []
    assert ctx.notes == ["2 parts with 3 messages (6 bytes) of an earlier run are uploaded now"]
    assert ctx.warnings == []


@virtual(started_at=MORNING)
async def test_what_cannot_be_sent_stays_there_and_goes_the_next_time(tmp_path):
    file = left_before(tmp_path)
    shop = Shop(context("http://127.0.0.1:1").clock)
    shop.is_down = True

    sink, _, ctx = await opened(tmp_path, shop)
    await sink.finish()

    assert ctx.warnings == [
        "not uploaded: 2 parts with 3 messages (6 bytes) of an earlier version; they stay where they are"
    ]
    assert file.read_bytes() == LEFT_BY_THE_FOLDER
    sink, shop, _ = await opened(tmp_path)
    await sink.finish()
    assert len(shop.objects) == 2
    assert files(tmp_path) == []


@virtual(started_at=MORNING)
async def test_a_folder_in_which_nothing_is_left_goes(tmp_path):
    left_before(tmp_path).unlink()
    other = tmp_path / "s3-unsent" / "other"
    other.mkdir()

    assert unsent(tmp_path).parts() == ([], [])

    assert [*(tmp_path / "s3-unsent").iterdir()] == [other]


@virtual(started_at=MORNING)
async def test_an_output_elsewhere_leaves_it_alone(tmp_path):
    file = left_before(tmp_path)

    for options in ({"prefix": "q"}, {"context": {"connection": {"bucket": "other"}}}):
        sink, shop, _ = await opened(tmp_path, **options)
        await sink.finish()
        assert shop.objects == {}

    assert files(tmp_path) == [file]


@virtual(started_at=MORNING)
async def test_of_two_outputs_one_sends_it(tmp_path):
    left_before(tmp_path)

    one, shop, _ = await opened(tmp_path)
    two, other, _ = await opened(tmp_path)
    await one.finish()
    await two.finish()

    assert (len(shop.objects), len(other.objects)) == (2, 0)


@pytest.mark.parametrize("at", ["s3-unsent", "s3-unsent/plant"])
@virtual(started_at=MORNING)
async def test_a_link_is_not_followed(tmp_path, at):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    left_before(elsewhere)
    data.mkdir()
    link = data / (unsent(data).place if at.endswith("plant") else at)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere / link.relative_to(data))

    sink, shop, ctx = await opened(data)
    await sink.finish()

    assert shop.objects == {}
    assert ctx.failures == [UNSENDABLE]
    assert ctx.warnings == [
        f"cannot send what may lie in '{unsent(data).place}': not a directory",
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"something else",
        b'{"key": "p/x"}\n',
        b'{"key":"k","media_type":"t","messages":1,"token":"t","packing":"none","size":99}\nshort',
        b'{"key":"k","media_type":"t","messages":1,"token":"t","packing":"none","size":-1}\n',
        b'{"key":"k","media_type":"t","messages":1,"token":"t","packing":"lz4","size":0}\n',
        b'{"key":"k\\n","media_type":"t","messages":1,"token":"t","packing":"none","size":0}\n',
    ],
)
@virtual(started_at=MORNING)
async def test_a_file_of_something_else_is_told_of_and_left_alone(tmp_path, body):
    left_before(tmp_path, "b.parts")
    file = left_before(tmp_path, "a.parts", body)

    sink, shop, ctx = await opened(tmp_path)
    await sink.finish()

    assert len(shop.objects) == 2
    assert ctx.warnings == [
        f"cannot send 'a.parts' in '{unsent(tmp_path).place}': it holds no parts"
    ]
    assert ctx.failures == [UNSENDABLE]
    assert ctx.classes == ["misconfigured"]
    assert files(tmp_path) == [file]


@virtual(started_at=MORNING)
async def test_what_is_no_file_is_told_of_by_name_each_and_waits_for_nobody(tmp_path):
    folder = tmp_path / unsent(tmp_path).place
    folder.mkdir(parents=True)
    os.mkfifo(folder / "a.parts")
    os.mkfifo(folder / "b.parts.tmp")
    (folder / "c.parts").symlink_to("/etc/passwd")
    (folder / "d.parts").mkdir()
    os.mknod(folder / "e.parts", stat.S_IFSOCK | 0o600)

    sink, _, ctx = await opened(tmp_path)
    await sink.finish()

    assert ctx.warnings == [
        f"cannot send '{name}' in '{unsent(tmp_path).place}': it is no file"
        for name in ("a.parts", "b.parts.tmp", "c.parts", "d.parts", "e.parts")
    ]
    assert ctx.failures == [UNSENDABLE]


@virtual(started_at=MORNING)
async def test_a_file_that_becomes_a_pipe_is_not_waited_for(tmp_path, monkeypatch):
    folder = tmp_path / unsent(tmp_path).place
    folder.mkdir(parents=True)
    os.mkfifo(folder / "a.parts")
    about = os.stat(__file__)
    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", lambda *_, **__: about)
        _, wrong = unsent(tmp_path).parts()

    assert wrong == [f"'a.parts' in '{unsent(tmp_path).place}': it is no file"]


@virtual(started_at=MORNING)
async def test_a_part_that_is_larger_than_may_be_held_is_not_read(tmp_path):
    folder = tmp_path / unsent(tmp_path).place
    folder.mkdir(parents=True)
    told = b'{"key":"p/k","media_type":"t","messages":1,"token":"t","packing":"none","size":%d}\n'
    (folder / "a.parts").write_bytes(told % (8 << 30))
    os.truncate(folder / "a.parts", len(told % (8 << 30)) + (8 << 30))

    found, wrong = unsent(tmp_path).parts()

    assert found == []
    assert wrong == [
        f"'a.parts' in '{unsent(tmp_path).place}': a part in it has 8,589,934,592 bytes, and 67,108,864"
        " are the most to read"
    ]


@virtual(started_at=MORNING)
async def test_a_part_that_is_refused_stays_and_the_log_names_its_file(tmp_path):
    file = left_before(tmp_path)
    shop = Shop(context("http://127.0.0.1:1").clock)
    shop.refused = {FIRST}

    sink, _, ctx = await opened(tmp_path, shop)
    await ctx.clock.sleep(5)

    assert shop.objects == {SECOND: b"2\n"}
    assert set(ctx.failures) == {ASIDE}
    await sink.finish()
    assert ctx.warnings[0] == (
        f"a part in 'a.parts' in '{unsent(tmp_path).place}' of --data-dir is not taken, and stays"
        " there: the shop refuses this one"
    )
    assert files(tmp_path) == [file]
    sink, shop, _ = await opened(tmp_path)
    await sink.finish()
    assert shop.objects == {FIRST: b"0\n1\n"}


ASIDE = "a part is set aside and tried again, and others go on: the shop refuses this one"


@virtual(started_at=MORNING)
async def test_parts_that_a_store_takes_long_to_refuse_do_not_hold_up_the_others():
    kept = PartsInMemory()
    for name in ("a", "b", "c", "d"):
        kept.put(entry(name.encode() * 2, key=f"p/{name}"), lambda *_: None)
    ctx = context("http://127.0.0.1:1")
    shop = Slow(ctx.clock, {"p/a", "p/b"})

    sink, _, ctx = await opened(kept, shop)
    await sink.write(["new"])
    await ctx.clock.sleep(1)

    assert sorted(shop.objects.values()) == [b'"new"\n', b"cc", b"dd"]
    await sink.finish()


class Slow(Shop):
    """A store that takes ten seconds to refuse some parts."""

    def __init__(self, clock: Clock, slow: set[str]) -> None:
        super().__init__(clock)
        self._slow = slow

    async def send(self, part: ObjectPart) -> None:
        if part.key in self._slow:
            await self._clock.sleep(10)
            raise Declined("no")
        await super().send(part)


@virtual(started_at=MORNING)
async def test_what_a_killed_process_had_not_finished_is_removed(tmp_path):
    folder = tmp_path / unsent(tmp_path).place
    folder.mkdir(parents=True)
    (folder / "a.parts.tmp").write_bytes(b"half of")

    assert unsent(tmp_path).parts() == ([], [])
    assert files(tmp_path) == []


@virtual(started_at=MORNING)
async def test_a_file_that_is_cut_off_while_it_is_sent_is_told_of_and_the_others_go_on(tmp_path):
    left_before(tmp_path)
    sink, shop, ctx = await opened(tmp_path)
    for file in files(tmp_path):
        os.truncate(file, 10)
    await sink.write(["new"])
    await sink.finish()

    assert sorted(shop.objects.values()) == [b'"new"\n']
    [first, second] = ctx.warnings
    assert first == second
    assert first.endswith(
        f".parts' in '{unsent(tmp_path).place}' cannot be read: it holds no parts"
    )
    assert ctx.failures == [UNSENDABLE] * 2
    assert ctx.classes == ["misconfigured"] * 2


@virtual(started_at=MORNING)
async def test_a_directory_that_was_never_needed_is_not_made(tmp_path):
    sink, _, _ = await opened(tmp_path)
    await sink.write([1])
    await sink.finish()

    assert list(tmp_path.iterdir()) == []


async def test_no_descriptor_is_left_open(tmp_path):
    async def round() -> None:
        left_before(tmp_path)
        left_before(tmp_path, "b.parts", b"damaged")
        found, _ = unsent(tmp_path).parts()
        for each in found:
            assert each.source is not None
            each.source.sent(each)

    await round()
    before = os.listdir("/dev/fd")
    await round()

    assert os.listdir("/dev/fd") == before
