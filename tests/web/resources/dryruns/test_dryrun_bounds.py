"""What a dry run shows of much: the first messages, and answers that have a size."""

from __future__ import annotations

import logging

import pytest

from headrace.web.resources.dryruns import dryrun_answers as dryanswers
from tests.web.resources.dryruns.bodies import ONES, Post, inline, script


async def test_of_many_messages_the_first_are_used(
    dry_run: Post, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "headrace.web"):
        said = await dry_run(
            {"messages": [*range(203)], "transforms": [{"type": "splitter", "out_size": 100}]}
        )

    assert said["stages"][0]["batches"] == [[*range(100)], [*range(100, 200)]]
    assert said["notes"] == ["only the first 200 of 203 messages were used"]
    assert caplog.messages == ["dry run: the first 200 of 203 messages are used"]


async def test_of_a_long_stage_the_beginning_is_shown(
    dry_run: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dryanswers, "MOST_SHOWN", 3)
    pairs = {"type": "splitter", "out_size": 2}

    said = await dry_run({"messages": [*range(8)], "transforms": [pairs], "attribution": True})

    assert said["stages"][0]["batches"] == [[0, 1], [2]]
    assert said["stages"][0]["origins"] == [[[0], [1]], [[2]]]
    assert said["notes"] == ["transforms[0]: 5 more messages are not shown"]


async def test_an_answer_has_a_size(dry_run: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dryanswers, "MOST_BYTES", 1000)
    pairs = {"type": "splitter", "out_size": 2}
    large = ["x" * 400, "x" * 400, "x" * 400, "y"]

    said = await dry_run(
        {
            "messages": large,
            "transforms": [pairs],
            "state": {"bucket": "b"},
            "buckets": {"k": {"v": 1}},
        }
    )

    assert said["stages"][0]["batches"] == [["x" * 400, "x" * 400]]
    assert said["buckets"] == {}
    assert said["notes"] == [
        "transforms[0]: 2 more messages are not shown",
        "bucket 'b': 1 more keys are not shown",
    ]


async def test_of_the_many_reasons_of_one_message_some_are_told_and_every_message_has_one(
    dry_run: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dryanswers, "MOST_REASONS", 2)
    many = script("for n in 2..7 { emit(#{ n: n }) }")

    said = await dry_run({"messages": [1, 2], "transforms": [many, ONES], "attribution": True})

    assert [(each["message"], each["why"][:8]) for each in said["left"]] == [
        (0, "'n' is 2"),
        (0, "'n' is 3"),
        (1, "'n' is 2"),
        (1, "'n' is 3"),
    ]
    assert said["notes"] == ["'left': 6 more reasons are not shown"]


async def test_reasons_take_their_part_of_the_size_of_an_answer(
    dry_run: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dryanswers, "MOST_BYTES", 500)
    messages = [{"n": n} for n in range(2, 102)]

    said = await dry_run({"messages": messages, "transforms": [ONES], "attribution": True})

    assert 0 < len(said["left"]) < 20
    assert said["notes"] == [f"'left': {100 - len(said['left'])} more reasons are not shown"]


@pytest.mark.long
async def test_a_message_that_doubles_and_doubles_is_not_written_out(dry_run: Post) -> None:
    # Each mapping is small, and so is what is held; written out it would fill the machine.
    doubled = [
        {"type": "copy", "from": f"a{level}", "as": f"a{level + 1}.{side}"}
        for level in range(60)
        for side in "lr"
    ]

    said = await dry_run(
        {
            "messages": [{"a0": 1}, {}],
            "transforms": [{"type": "map", "mappings": doubled, "on_missing": "omit"}],
        }
    )

    assert said["outcome"] == "ran"
    assert said["stages"][0]["batches"] == []
    assert said["notes"] == ["transforms[0]: 2 more messages are not shown"]


async def test_at_most_200_entries_of_the_bucket_come_back(dry_run: Post) -> None:
    entries = {f"k{n}": {"n": n} for n in range(250)}

    said = await dry_run({"messages": [], "state": {"bucket": "b"}, "buckets": entries})

    assert len(said["buckets"]) == 200
    assert said["notes"] == ["bucket 'b': 50 more keys are not shown"]


async def test_at_most_200_keys_come_back(try_script: Post) -> None:
    said = await try_script(
        {"source": inline("emit(1)"), "state": {f"k{n}": {"n": n} for n in range(201)}}
    )

    assert len(said["state"]) == 200
    assert said["notes"] == ["bucket 'dry-run': 1 more keys are not shown"]
