"""ClickHouse that says no, and who answers in its place. The engine is real, the HTTP front is ours.

Only the wrong credential is shown to the server that ``CLICKHOUSE_URL`` names, if it names one.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.connectors.clickhouse.connection import Limits
from tests.clickhouse_sides import (
    N,
    answering,
    context,
    fault,
    output,
    sink,
    started,
)
from tests.peer import replies
from tests.promises import promise
from tests.services.authority import Authority
from tests.services.clickhouse import Access, ClickHouse


async def refusal(access: Access, **options: Any) -> str:
    """Return why a sink is refused at the start."""
    refused = await fault(access, **options)
    assert isinstance(refused, BuildRefused)
    assert refused.fault.code == "turned-away"
    assert refused.fault.path == ("connection",)
    return str(refused)


# Who does not get in


async def test_a_wrong_credential_refuses_the_output_in_the_words_of_the_server(
    clickhouse: Access,
):
    for user, password in ((clickhouse.user, "s3cret-one"), ("nobody", clickhouse.password)):
        said = await refusal(Access(clickhouse.url, user, password, "default"))

        assert said == (
            f"{clickhouse.where} says 'Code 516 AUTHENTICATION_FAILED: {user}: Authentication failed:"
            " password is incorrect, or there is no user with such name'"
        )


@pytest.mark.usefixtures("front_of_ours")
async def test_a_user_and_a_password_of_any_letters_get_in(tmp_path: Path):
    with ClickHouse(tmp_path, user="schütz", password="pä$${}ß: ok") as server:
        async with started(output("t", N), context(server.access)) as it:
            await it.write([{"n": 1}])

        assert server.access.rows("SELECT n FROM t") == [[1]]


@pytest.mark.long
@pytest.mark.usefixtures("front_of_ours")
async def test_a_credential_that_is_refused_later_is_not_tried_for_every_batch(tmp_path: Path):
    server = ClickHouse(tmp_path, user="writer", password="open-sesame")
    with server:
        async with started(output("t", N), context(server.access)) as it:
            await asyncio.to_thread(server.stop)
            server.password = "changed"
            await asyncio.to_thread(server.start)

            with pytest.raises(Unreachable) as failed:
                await it.write([{"n": 1}])

    assert str(failed.value) == f"{server.address} says 'Code 516 AUTHENTICATION_FAILED'"


# Who is somebody else


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (replies("<html>hello</html>"), "answers, and not as ClickHouse does"),
        (replies(b"1\n" * 40_000), "answers, and not as ClickHouse does"),
        (replies("nobody here", 404), "says 'HTTP status 404'"),
        (
            replies(headers={"X-ClickHouse-Exception-Code": "497"}),
            "says 'Code 497'",
        ),
        (
            replies(status=308, headers={"Location": "https://elsewhere.example.org/"}),
            "answers with a redirect to 'https://elsewhere.example.org/'",
        ),
    ],
    ids=["a web page", "something long", "a status", "an exception with status 200", "a redirect"],
)
async def test_somebody_else_refuses_the_output(answer: Any, said: str):
    async with answering(answer) as (it, access):
        assert await refusal(access) == f"{access.where} {said}"
        assert len(it.received) == 1


async def test_a_table_that_is_described_by_somebody_else_refuses_the_output():
    async with answering(replies("1\n"), replies(), replies("{}")) as (_, access):
        assert await refusal(access) == f"{access.where} answers, and not as ClickHouse does"


async def test_a_gateway_without_its_server_is_tried_again():
    async with answering(replies("Bad gateway", 502)) as (_, access):
        told = await fault(access)

    assert isinstance(told, Unreachable)
    assert str(told) == f"{access.where} says 'HTTP status 502'"


async def test_what_a_server_sends_back_of_the_password_is_not_shown():
    said = "Code: 516. DB::Exception: p@ss-w0rd is wrong. (AUTHENTICATION_FAILED)"
    async with answering(replies(said, 403)) as (_, access):
        assert await refusal(access) == (
            f"{access.where} says 'Code 516 AUTHENTICATION_FAILED: ${{PASSWORD}} is wrong'"
        )


async def test_a_table_that_may_not_be_described_is_taken_as_it_is():
    denied = "Code: 497. DB::Exception: u: Not enough privileges. (ACCESS_DENIED)"
    async with answering(replies("1\n"), replies(), replies(denied, 500)) as (it, access):
        made = sink(access)
        await made.start()
        await made.write([{"n": 1}])
        await made.finish()

        assert len(it.received) == 4


async def test_of_an_error_that_quotes_a_long_row_the_beginning_is_read():
    violated = (
        "Code: 469. DB::Exception: Constraint `small` for table t is violated. Column values: n = "
    )
    long = replies(violated + "7" * 5_000 + ". (VIOLATED_CONSTRAINT)", 500)
    async with answering(replies("1\n"), replies(), replies('["n","Int32",""]')) as (it, access):
        made = sink(access, limits=Limits(error_bytes=4_000))
        await made.start()
        it.answers = [long]
        with pytest.raises(BatchFailed) as failed:
            await made.write([{"n": 7}])
        await made.finish()

    # The name of the code comes last.
    assert str(failed.value) == f"{access.where} says 'Code 469' of the constraint 'small'"


async def test_whoever_may_not_create_a_table_is_told_what_to_do():
    denied = "Code: 497. DB::Exception: u: Not enough privileges. (ACCESS_DENIED)"
    async with answering(replies("1\n"), replies(denied, 403)) as (_, access):
        refused = await fault(access)

    assert isinstance(refused, BuildRefused)
    assert str(refused) == (
        f"{access.where} says 'Code 497 ACCESS_DENIED: u: Not enough privileges'"
    )
    assert refused.fault.path == ("table",)
    assert refused.fault.expected == "the right to create it, or 'create_table: false'"


async def test_a_right_that_is_taken_away_fails_batches_until_it_is_back():
    described = '["n","Nullable(Int32)",""]'
    denied = replies("Code: 497. DB::Exception: u: it needs INSERT(n) ON d.t. (ACCESS_DENIED)", 403)
    async with answering(replies("1\n"), replies(), replies(described)) as (it, access):
        ctx = context(access)
        made = sink(access, ctx=ctx)
        await made.start()
        it.answers = [denied, denied]
        texts = set()
        for _ in range(2):
            with pytest.raises(BatchFailed) as failed:
                await made.write([{"n": 1}])
            assert not isinstance(failed.value, Unreachable)
            texts.add(str(failed.value))
        await made.write([{"n": 2}])
        await made.finish()

    assert texts == {f"{access.where} says 'Code 497 ACCESS_DENIED'"}
    assert ctx.warnings == [
        f"{access.where} says 'Code 497 ACCESS_DENIED': u: it needs INSERT(n) ON d.t (told this once)"
    ]


async def test_a_gateway_that_lets_nobody_through_fails_each_batch():
    described = '["n","Nullable(Int32)",""]'
    async with answering(replies("1\n"), replies(), replies(described)) as (it, access):
        ctx = context(access)
        made = sink(access, ctx=ctx)
        await made.start()
        it.answers = [replies("<html>not here</html>", 403)]
        with pytest.raises(BatchFailed) as failed:
            await made.write([{"n": 1}])
        await made.finish()

    assert str(failed.value) == f"{access.where} says 'HTTP status 403'"
    assert ctx.warnings == []


async def test_an_answer_full_of_blanks_holds_nobody_up():
    blanks = " " * 60_000
    said = f"Code: 9. DB::Exception: (ABC){blanks}x in scope{blanks}x. (CANNOT_X)"
    async with answering(replies("1\n"), replies(said, 500)) as (_, access):
        assert isinstance(await fault(access), BuildRefused)


@promise("clickhouse.output.written", "clickhouse.output_tokens.written")
async def test_an_insert_is_one_request_with_everything_that_it_needs():
    described = '["n","Nullable(Int32)","","","","",""]'
    async with answering(replies("1\n"), replies(), replies(described)) as (it, access):
        made = sink(access, settings={"insert_quorum": 2}, order_by=["n"])
        await made.start()
        await made.write([{"n": 258}])
        await made.finish()

        insert = it.received[-1]
        ports = {request.port for request in it.received}
    assert insert.method == "POST"
    assert insert.path == (
        "/?query=INSERT+INTO+%22t%22+(%22n%22)+FORMAT+Native&database=d&async_insert=0"
        "&input_format_null_as_default=0&insert_quorum=2"
    )
    assert insert.body == b"\x01\x01\x01n\x05Int32\x02\x01\x00\x00"
    assert insert.headers["X-ClickHouse-User"] == "u"
    assert insert.headers["X-ClickHouse-Key"] == "p@ss-w0rd"
    assert insert.headers["Content-Length"] == str(len(insert.body))
    assert insert.headers["User-Agent"] == "headrace"
    assert len(ports) == 1


async def test_a_redirect_while_it_runs_is_not_followed():
    elsewhere = replies(status=307, headers={"Location": "https://elsewhere.example.org/"})
    async with answering(replies("1\n"), replies(), replies("[]")) as (it, access):
        it.answers[2] = replies('["n","Int32",""]')
        made = sink(access)
        await made.start()
        it.answers = [elsewhere]
        with pytest.raises(Unreachable) as failed:
            await made.write([{"n": 1}])
        await made.finish()

    where = access.where
    assert (
        str(failed.value) == f"{where} answers with a redirect to 'https://elsewhere.example.org/'"
    )


# TLS


@pytest.mark.usefixtures("front_of_ours")
async def test_rows_arrive_over_tls(authority: Authority, tmp_path: Path):
    with ClickHouse(tmp_path, tls=authority) as server:
        ctx = context(server.access, tls={"ca_file": str(authority.ca_file)})
        async with started(output("t", N), ctx) as it:
            await it.write([{"n": 1}])

        assert server.access.rows("SELECT n FROM t") == [[1]]


@pytest.mark.long
@pytest.mark.usefixtures("front_of_ours")
async def test_tls_that_cannot_work_refuses_the_output(authority: Authority, tmp_path: Path):
    stranger = Authority(tmp_path / "stranger")
    with (
        ClickHouse(tmp_path / "server", tls=authority) as server,
        ClickHouse(tmp_path / "guarded") as guarded,
    ):
        plain = Access(server.url.replace("https", "http"), "u", "p", "d")
        secret = Access(guarded.url.replace("http", "https"), "u", "p", "d")
        strange = context(server.access, tls={"ca_file": str(stranger.ca_file)})

        assert await refusal(server.access) == (
            f"the certificate of {server.address} is not trusted: unable to get local issuer"
            " certificate"
        )
        assert await refusal(server.access, ctx=strange) == (
            f"the certificate of {server.address} is not trusted: unable to get local issuer"
            " certificate"
        )
        assert await refusal(plain) == f"{server.address} speaks TLS, and the connection does not"
        assert await refusal(secret) == f"{guarded.address} does not speak TLS"
