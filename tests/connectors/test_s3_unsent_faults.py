"""Kept parts that cannot be sent, and what is no kept part: told of, left alone, and in nobody's way."""

from __future__ import annotations

import os
import stat

import pytest

from headrace.compiler.clock import Clock
from headrace.connectors.s3.objectpart import Declined, ObjectPart
from tests.s3_keeping import FIRST, MORNING, SECOND, files, left, opened, part, unsent
from tests.s3_sides import Shop, context
from tests.virtual import virtual

UNSENDABLE = "some of what an earlier run has kept cannot be sent"


@pytest.mark.parametrize("at", ["s3-unsent", "s3-unsent/plant"])
@virtual(started_at=MORNING)
async def test_a_link_is_not_followed(tmp_path, at):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    elsewhere.mkdir()
    data.mkdir()
    link = data / (unsent(data).place if at.endswith("plant") else at)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)

    ctx = await left(data)

    assert list(elsewhere.iterdir()) == []
    where = unsent(data).place
    assert ctx.failures[0] == UNSENDABLE
    assert ctx.failures[-1] == "parts are lost: they could not be uploaded in time"
    assert ctx.lost == {ctx.failures[-1]: 3}
    assert ctx.warnings == [
        f"cannot send what may lie in '{where}': not a directory",
        "lost, because not uploaded in time: 2 parts with 3 messages (6 bytes); they cannot be kept in"
        " --data-dir: not a directory",
    ]


@virtual(started_at=MORNING)
async def test_parts_that_find_no_room_on_the_disk_are_lost_and_leave_nothing(
    tmp_path, monkeypatch
):
    def full(*_: object) -> None:
        raise OSError(28, "never shown")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        ctx = await left(tmp_path)

    assert ctx.failures[-1] == "parts are lost: they could not be uploaded in time"
    assert ctx.warnings == [
        "lost, because not uploaded in time: 2 parts with 3 messages (6 bytes); they cannot be kept in"
        " --data-dir: no space left on device"
    ]
    assert files(tmp_path) == []


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
    await left(tmp_path)
    folder = tmp_path / unsent(tmp_path).place
    (folder / "a.parts").write_bytes(body)

    sink, shop, ctx = await opened(tmp_path)
    await sink.finish()

    assert len(shop.objects) == 2
    assert ctx.warnings == [
        f"cannot send 'a.parts' in '{unsent(tmp_path).place}': it holds no parts"
    ]
    assert ctx.failures == [UNSENDABLE]
    assert ctx.classes == ["misconfigured"]
    assert files(tmp_path) == [folder / "a.parts"]


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
async def test_a_part_that_is_refused_again_stays_and_holds_up_nothing(tmp_path):
    await left(tmp_path)
    [file] = files(tmp_path)

    for n in range(2):
        ctx = context("http://127.0.0.1:1")
        shop = Shop(ctx.clock)
        shop.refused = {FIRST}
        sink, _, ctx = await opened(tmp_path, shop)
        await sink.write(["new"])
        await ctx.clock.sleep(5)

        assert len(shop.objects) == 2 - n  # the second part went the first time, and the new one
        assert set(ctx.failures) == {ASIDE}
        await sink.finish()
        place = unsent(tmp_path).place
        assert ctx.warnings == [
            f"a part in '{file.name}' in '{place}' of --data-dir is not taken, and stays there: the"
            " shop refuses this one",
            f"not uploaded: 1 part with 2 messages (4 bytes); kept in '{place}' of --data-dir for the"
            " next output with this bucket and prefix",
        ]
        assert files(tmp_path) == [file]

    sink, shop, ctx = await opened(tmp_path)
    await sink.finish()
    assert shop.objects == {FIRST: b"0\n1\n"}
    assert files(tmp_path) == []


ASIDE = "a part is set aside and tried again, and others go on: the shop refuses this one"


@virtual(started_at=MORNING)
async def test_a_part_that_is_refused_for_good_is_kept_at_the_end(tmp_path):
    sink, shop, ctx = await opened(tmp_path)
    shop.refused = {FIRST}
    await sink.write([1])
    await sink.write([2])
    await sink.finish()

    assert shop.objects == {SECOND: b"2\n"}
    assert "not uploaded: 1 part with 1 message (2 bytes); kept in" in ctx.warnings[-1]
    assert len(files(tmp_path)) == 1


@virtual(started_at=MORNING)
async def test_parts_that_a_store_takes_long_to_refuse_do_not_hold_up_the_others(tmp_path):
    for name in ("a", "b", "c", "d"):
        unsent(tmp_path).keep([part(name.encode() * 2, key=f"p/{name}")], MORNING).close()
    ctx = context("http://127.0.0.1:1")
    shop = Slow(ctx.clock, {"p/a", "p/b"})

    sink, _, ctx = await opened(tmp_path, shop)
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
    await left(tmp_path)
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
        unsent(tmp_path).keep([part()], MORNING).close()
        (tmp_path / unsent(tmp_path).place / "b.parts").write_bytes(b"damaged")
        found, _ = unsent(tmp_path).parts()
        for each in found:
            assert each.source is not None
            each.source.sent(each)

    await round()
    before = os.listdir("/dev/fd")
    await round()

    assert os.listdir("/dev/fd") == before
