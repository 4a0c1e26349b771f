"""What is agreed on with an OPC UA server, and what is made of its errors."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from asyncua import ua
from asyncua.crypto.uacrypto import InvalidSignature  # type: ignore[attr-defined]

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.opcua.login import OpcuaServer
from tests.doubles import StubContext
from tests.nats_sides import listening
from tests.opcua_sides import context, source

POLICY = "http://opcfoundation.org/UA/SecurityPolicy#"
USER = ua.UserTokenType.UserName


def login(ctx: StubContext | None = None, **options: Any) -> OpcuaServer:
    return OpcuaServer("opc.tcp://plc:4840", "plc:4840", ctx or StubContext(), **options)


def offered(*policies: str | None) -> list[ua.UserTokenPolicy]:
    """Return policies for a password, by their names; None: the one of the channel."""
    return [
        ua.UserTokenPolicy(
            str(place), USER, SecurityPolicyUri=None if name is None else POLICY + name
        )
        for place, name in enumerate(policies)
    ]


@pytest.mark.parametrize(
    ("names", "best"),
    [
        (["None", "Basic256Sha256"], "Basic256Sha256"),
        (["Basic128Rsa15", "Basic256", "Aes256_Sha256_RsaPss"], "Aes256_Sha256_RsaPss"),
        (["None", "Basic128Rsa15"], "Basic128Rsa15"),
        (["Unknown", "None"], "None"),
        ([None, "Basic256Sha256"], "Basic256Sha256"),
        ([None], "None"),
    ],
)
def test_a_password_goes_by_the_best_policy_that_is_offered(names, best):
    found = login().token_policy(offered(*names), USER, POLICY + "None", b"certificate")

    assert found.SecurityPolicyUri == POLICY + best


def test_a_password_that_cannot_be_encrypted_as_it_is_wanted_is_not_sent():
    with pytest.raises(BuildRefused) as unknown:
        login().token_policy(offered("Unknown"), USER, POLICY + "None", b"certificate")
    with pytest.raises(BuildRefused) as without:
        login().token_policy(offered("Basic256Sha256"), USER, POLICY + "None", None)

    assert str(unknown.value) == (
        "plc:4840 wants the password encrypted in a way that is not known here"
    )
    assert str(without.value) == (
        "plc:4840 wants the password encrypted and shows no certificate to do it with"
    )


def test_a_server_without_the_key_of_its_certificate_is_refused():
    refusal = login().refusal(InvalidSignature())

    assert str(refusal) == "plc:4840 does not have the key of the certificate it shows"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (0x80830000, "has no endpoint at the path of this url (BadTcpEndpointUrlInvalid)"),
        (0x80550000, "does not take the security 'None' (BadSecurityPolicyRejected)"),
        (0x80540000, "does not take the security 'None' (BadSecurityModeRejected)"),
        (0x80210000, "does not let in anybody without a user (BadIdentityTokenRejected)"),
        (0x80200000, "does not let in anybody without a user (BadIdentityTokenInvalid)"),
    ],
)
async def test_a_no_of_the_server_is_a_refusal(code, told):
    async with listening(saying_no(code)) as address:
        with pytest.raises(BuildRefused) as refused:
            await anext(source(context(f"opc.tcp://{address}/"), "Temp").read())

    assert str(refused.value) == f"{address} {told}"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0x807D0000, "BadTcpServerTooBusy"),
        (0x80560000, "BadTooManySessions"),
        (0x80FE0000, "0x80FE0000"),
    ],
)
async def test_what_may_pass_is_tried_again(code, name):
    async with listening(saying_no(code)) as address:
        with pytest.raises(Unreachable) as raised:
            await anext(source(context(f"opc.tcp://{address}/"), "Temp").read())

    assert str(raised.value) == f"{address} does not take the connection ({name})"


def saying_no(code: int) -> Any:
    """Return a server that answers the first words of a client with an error."""

    async def serve(reader: Any, writer: Any) -> None:
        await reader.read(1)
        writer.write(b"ERRF" + struct.pack("<IIi", 16, code, -1))
        await writer.drain()

    return serve
