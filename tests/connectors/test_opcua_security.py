"""How the `opcua` input gets in, and what is said when it does not: against both servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BuildRefused, Refused, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.connectors.opcua import OpcuaConnection, OpcuaInput
from tests.connected import subscribed
from tests.doubles import StubContext
from tests.opcua_sides import changes, context, source
from tests.services.opcua import Identity, NodeOpcua, Opcua
from tests.services.server import free_port
from tests.stand_ins import Kept, pipeline, takes
from tests.stopwatch import Stopwatch

STATE = {"node_id": "i=2259"}
SECONDS = 6
"""How long a refusal may take."""
POLICIES = ["Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss"]
OFFERED = [
    "Basic256Sha256_Sign",
    "Basic256Sha256_SignAndEncrypt",
    "Aes128Sha256RsaOaep_SignAndEncrypt",
    "Aes256Sha256RsaPss_SignAndEncrypt",
]
UNVERIFIED = (
    "the certificate of {} is not verified: name it as 'server_certificate' in the connection, so"
    " that nobody else can pass for it"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the certificates of a server, of us, and of somebody else."""
    made = tmp_path_factory.mktemp("opcua")
    for name in ("server", "ours", "other"):
        Identity(made, name, uri=f"urn:plant:{name}")
    return made


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Opcua]:
    """Give a server that wants a password, with and without a secure channel."""
    offered = ["NoSecurity", *OFFERED]
    users = {"joe": "open-sesame"}
    identity = Identity(folder / "guarded", "server", uri="urn:plant:server")
    with Opcua(folder / "guarded", identity=identity, users=users, policies=offered) as server:
        server.identity = identity
        yield server


@pytest.fixture(scope="module")
def secure(folder: Path) -> Iterator[Opcua]:
    """Give a server that trusts only us, and speaks only over a secure channel."""
    identity = Identity(folder / "secure", "server", uri="urn:plant:server")
    trusts = folder / "ours.der"
    with Opcua(folder / "secure", identity=identity, policies=OFFERED, trusts=trusts) as server:
        yield server


@pytest.fixture(scope="module")
def other_make(folder: Path) -> Iterator[NodeOpcua]:
    """Give the independent server, which wants a password and trusts only us."""
    made = NodeOpcua(folder / "node", users={"joe": "open-sesame"}, policies=["all"])
    made.trust(folder / "ours.der")
    with made as server:
        yield server


def with_certificate(name: str = "ours", **options: str) -> dict[str, str]:
    files = {"certificate": f"{name}.der", "private_key": f"{name}.key.pem"}
    return {"security_policy": "Basic256Sha256", **files, **options}


def joe(password: str = "open-sesame") -> dict[str, str]:
    return {"username": "joe", "password": password}


async def reads(ctx: StubContext) -> bool:
    async with subscribed(source(ctx, STATE)) as reader:
        [message] = await changes(reader, 1)
    return message["status"] == "Good"


async def refusal(ctx: StubContext) -> str:
    """Return why the input is refused; soon, and without the password."""
    watch = Stopwatch()
    with pytest.raises(BuildRefused) as refused:
        await anext(source(ctx, STATE).read())
    assert watch.seconds < SECONDS
    assert refused.value.fault.code == "turned-away"
    return str(refused.value)


async def test_anybody_gets_in_where_anybody_may(opcua_server: Opcua):
    ctx = context(opcua_server)

    assert await reads(ctx)
    assert ctx.warnings == []


async def test_a_user_gets_in_where_nobody_asks_for_one_only_without(opcua_server: Opcua):
    told = await refusal(context(opcua_server, **joe()))

    assert told == f"{opcua_server.address} takes no user names"


@pytest.mark.long
async def test_nobody_gets_in_without_a_user_where_one_is_asked_for(guarded, other_make):
    for server in (guarded, other_make):
        told = await refusal(context(server))

        assert told == f"{server.address} lets nobody in without a user"


async def test_a_wrong_password_is_refused(guarded, other_make):
    for server in (guarded, other_make):
        for user in (joe("hunter2"), {"username": "jim", "password": "open-sesame"}):
            told = await refusal(context(server, **user))

            assert told == (
                f"{server.address} does not let in this user and password (BadUserAccessDenied)"
            )


async def test_a_pipeline_with_a_wrong_password_is_not_created(guarded: Opcua):
    filed = {"plc": OpcuaConnection.load({"endpoint": guarded.url, **joe("hunter2")})}
    engine = Engine(Clock(asyncio.get_running_loop()), connections=filed, secrets=Secrets({}, {}))
    reading = OpcuaInput.load({"connection": "plc", "nodes": [STATE]})

    with pytest.raises(Refused) as refused:
        await engine.compile(pipeline("p", [reading], [], [takes(Kept())]))

    assert [*engine.names()] == []
    assert "hunter2" not in str(refused.value)
    [diagnostic] = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == (
        "turned-away",
        f"{guarded.address} does not let in this user and password (BadUserAccessDenied)",
    )
    await engine.close()


async def test_a_password_is_encrypted_if_the_server_can_do_so(guarded, other_make, monkeypatch):
    for server in (guarded, other_make):
        ctx = context(server, **joe())

        assert await reads(ctx)
        assert ctx.warnings == []  # not in the clear: of that there would be a warning


@pytest.mark.long
async def test_a_password_in_the_clear_is_warned_of(tmp_path):
    with Opcua(tmp_path, users={"joe": "open-sesame"}) as server:
        ctx = context(server, **joe())

        assert await reads(ctx)
        assert ctx.warnings == [
            f"the password goes to {server.address} in the clear: the server offers nothing better"
            " without a 'security_policy'"
        ]


@pytest.mark.parametrize("policy", POLICIES)
async def test_every_policy_is_spoken(folder, secure, other_make, policy):
    options: Any = with_certificate(security_policy=policy)

    assert await reads(context(secure, folder, **options))
    assert await reads(context(other_make, folder, **options, **joe()))


async def test_messages_may_be_signed_only(folder, secure, other_make):
    options: Any = with_certificate(security_mode="Sign")

    assert await reads(context(secure, folder, **options))
    assert await reads(context(other_make, folder, **options, **joe()))


async def test_security_that_is_not_offered_is_refused_with_what_is(folder, secure, opcua_server):
    signed: Any = with_certificate(security_policy="Aes256_Sha256_RsaPss", security_mode="Sign")
    there = (
        "Aes128_Sha256_RsaOaep / SignAndEncrypt, Aes256_Sha256_RsaPss / SignAndEncrypt,"
        " Basic256Sha256 / Sign, Basic256Sha256 / SignAndEncrypt"
    )

    assert await refusal(context(secure)) == (
        f"{secure.address} has no endpoint with the security 'None', only: {there}"
    )
    assert await refusal(context(secure, folder, **signed)) == (
        f"{secure.address} has no endpoint with the security 'Aes256_Sha256_RsaPss / Sign',"
        f" only: {there}"
    )
    assert await refusal(context(opcua_server, folder, **with_certificate())) == (
        f"{opcua_server.address} has no endpoint with the security"
        " 'Basic256Sha256 / SignAndEncrypt', only: None"
    )


async def test_a_certificate_that_the_server_does_not_trust_is_refused(folder, secure, other_make):
    assert await refusal(context(secure, folder, **with_certificate("other"))) == (
        f"{secure.address} does not take our certificate (BadCertificateUntrusted)"
    )
    assert await refusal(context(other_make, folder, **with_certificate("other"), **joe())) == (
        f"{other_make.address} does not take our certificate (BadSecurityChecksFailed)"
    )


async def test_a_server_is_known_by_its_certificate(folder, secure):
    known = context(secure, folder, **with_certificate(server_certificate="secure/server.pem"))
    unknown = context(secure, folder, **with_certificate())

    assert await reads(known)
    assert known.warnings == []
    assert await reads(unknown)
    assert unknown.warnings == [UNVERIFIED.format(secure.address)]


async def test_another_certificate_than_the_known_one_is_refused(folder, guarded, other_make):
    pinned = {"server_certificate": "other.pem"}
    for server in (guarded, other_make):
        told = f"{server.address} shows another certificate than that in 'server_certificate'"

        assert await refusal(context(server, folder, **with_certificate(**pinned), **joe())) == told
        assert await refusal(context(server, folder, **pinned, **joe())) == told


async def test_nobody_at_the_port_is_no_refusal():
    port = free_port()

    with pytest.raises(Unreachable) as raised:
        await anext(source(context(f"opc.tcp://127.0.0.1:{port}/"), STATE).read())

    assert str(raised.value) == f"127.0.0.1:{port} does not answer: connection refused"


@pytest.mark.long
async def test_who_speaks_something_else_does_not_answer_as_a_server_does(redis_server):
    address = redis_server.address

    with pytest.raises(Unreachable) as raised:
        await anext(source(context(f"opc.tcp://{address}/"), STATE).read())

    assert str(raised.value) in (f"{address} hangs up", f"{address} does not answer in time")
