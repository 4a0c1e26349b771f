"""What a config may say of OPC UA: connections, nodes, and their refusals."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.errors import BuildRefused
from headrace.connectors.opcua import OpcuaConnection, OpcuaInput
from headrace.connectors.opcua.login import OpcuaServer
from headrace.connectors.opcua.nodes import FORMS, NodeKey
from tests.doubles import StubContext, refusals
from tests.promises import promise
from tests.services.opcua import Identity

URL = "opc.tcp://plc:4840/server"
NODES = {"connection": "plc", "nodes": [{"node_id": "i=2258"}]}


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("ns=2;s=Press.Temp", None),
        ("s=Press", None),
        ("ns=0;i=85", "i=85"),
        ("i=4294967295", None),
        ("ns=65535;i=0", None),
        ("ns=2;s=a;b=c;ns=3 ", None),
        ("ns=2;s=Grüße\n", None),
        ("ns=2;g=09087e75-8e5e-499b-954f-f2a9603db28a", None),
        ("ns=2;g=09087E75-8E5E-499B-954F-F2A9603DB28A", "ns=2;g=09087e75-8e5e-499b-954f-f2a9603db28a"),
        ("ns=1;b=M/RbKBsRVkePCePcx24oRA==", None),
        ("ns=002;i=0005", "ns=2;i=5"),
        (f"ns={'0' * 5000};i=5", "i=5"),
    ],
)  # fmt: skip
def test_a_node_id_is_taken_in_the_servers_notation(text, same):
    key = NodeKey.of(text)

    assert key.text == (same or text)
    assert NodeKey.of(key.text) == key
    assert OpcuaInput.load({"connection": "plc", "nodes": [{"node_id": text}]})


@given(st.text(min_size=1, max_size=50), st.integers(0, 65535))
def test_any_text_can_be_an_identifier(identifier, namespace):
    key = NodeKey(namespace, "s", identifier)

    assert NodeKey.of(key.text) == key


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "it has no identifier that begins with i=, s=, g= or b="),
        ("Temp", "it has no identifier that begins with i=, s=, g= or b="),
        ("ns=2", "it has no identifier that begins with i=, s=, g= or b="),
        ("ns=x;i=1", "it has no identifier that begins with i=, s=, g= or b="),
        ("ns=2;x=1", "it has no identifier that begins with i=, s=, g= or b="),
        ("ns=2:s=Temp", "a semicolon parts the namespace from the identifier"),
        ("ns=2,s=Temp", "a semicolon parts the namespace from the identifier"),
        ("ns=2;s=", "its identifier is empty"),
        (" ns=2;s=Temp", "there are blanks around it"),
        ("nsu=urn:plant;s=Temp", "it names its namespace by a url, and not by its number"),
        ("ns=65536;i=1", "its namespace is larger than 65,535"),
        (f"ns={'9' * 5000};i=1", "its namespace is larger than 65,535"),
        ("i=4294967296", "after i= comes a number of at most 4,294,967,295"),
        ("i=-1", "after i= comes a number of at most 4,294,967,295"),
        ("i=1.5", "after i= comes a number of at most 4,294,967,295"),
        ("g=09087e75", "after g= comes a guid, 8-4-4-4-12 hexadecimal digits"),
        ("b=***", "after b= comes base64"),
        ("s=" + "x" * 4097, "its identifier is longer than 4,096 characters"),
    ],
)
def test_what_is_no_node_id_is_refused_with_a_good_form(text, wrong):
    listed = refusals(OpcuaInput, {"connection": "plc", "nodes": [{"node_id": text}]})
    browsed = refusals(OpcuaInput, {"connection": "plc", "browse": {"root": text}})

    [listed_message], [browsed_message] = listed, browsed
    assert listed_message.startswith("nodes[0].node_id: ")
    assert listed_message.endswith(f" is no node id: {wrong}")
    assert browsed_message.startswith("browse.root: ")
    assert browsed_message.endswith(f" is no node id: {wrong}")
    assert "ns=2;s=Press.Temp" in FORMS


@pytest.mark.parametrize("nodes", [{}, {"nodes": []}, {"browse": None}])
def test_an_input_reads_listed_nodes_or_browses(nodes):
    assert refusals(OpcuaInput, {"connection": "plc", **nodes}) == [": this reads no node"]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"browse": {}}, "browse.root: this key is required"),
        ({"browse": {"root": "i=85", "depth": 0}},
         "browse.depth: expected an integer of at least 1, found 0"),
        ({"deadband": -1}, "deadband: expected a number of at least 0 and of at most 1e+300, found -1"),
        ({"deadband": "1"},
         'deadband: expected a number of at least 0 and of at most 1e+300, found "1"'),
        ({"max_batch": -1}, "max_batch: expected an integer of at least 0, found -1"),
        ({"queue_size": 1.5},
         "queue_size: expected an integer of at least 0 and of at most 4294967295, found 1.5"),
        ({"publish_interval_ms": -1},
         "publish_interval_ms: expected an integer of at least 0 and of at most 86400000, found -1"),
        ({"sampling_interval_ms": True},
         "sampling_interval_ms: expected an integer of at least 0 and of at most 86400000, found true"),
        ({"interval": 5}, "interval: unknown key 'interval'"),
    ],
)  # fmt: skip
def test_options_out_of_their_bounds_are_refused(options, refusal):
    assert refusals(OpcuaInput, {**NODES, **options}) == [refusal]


def test_what_is_left_out_has_its_default():
    found = OpcuaInput.load({**NODES, "browse": {"root": "i=85", "depth": None}})

    assert found.browse is not None
    assert found.browse.depth == 3
    assert (found.max_batch, found.publish_interval_ms, found.queue_size) == (1, 1000, 1)
    assert (found.deadband, found.sampling_interval_ms) == (None, None)


@promise("delivery.refused.on_delivery")
def test_nobody_can_be_told_of_a_delivery():
    assert not OpcuaInput.acknowledges
    assert OpcuaInput.unacknowledged == "a server forgets a value when the next one is there"


@pytest.mark.parametrize(
    ("endpoint", "wrong"),
    [
        ("plc:4840", "it does not begin with opc.tcp://"),
        ("https://plc:4840", "it does not begin with opc.tcp://"),
        ("opc.tcp://", "its host or its port is malformed, or something else than a path follows"),
        ("opc.tcp://plc:x/", "its host or its port is malformed, or something else than a path follows"),
        ("opc.tcp://plc?a", "its host or its port is malformed, or something else than a path follows"),
        ("opc.tcp://plc:0", "its port is not a number from 1 to 65535"),
        ("opc.tcp://plc:70000/", "its port is not a number from 1 to 65535"),
        ("opc.tcp://joe:secret@plc", "it holds an '@': the user and the password are keys of their own"),
    ],
)  # fmt: skip
def test_an_endpoint_that_can_be_none_is_refused(endpoint, wrong):
    text = f"this is no url of an OPC UA server: {wrong}"

    assert refusals(OpcuaConnection, {"endpoint": endpoint}) == [f"endpoint: {text}"]

    filed = OpcuaConnection.load({"endpoint": "${URL}"})
    with pytest.raises(BuildRefused) as refused:
        filed.server(StubContext(secrets={"URL": endpoint}))
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("endpoint", "url", "where"),
    [
        ("opc.tcp://plc", "opc.tcp://plc:4840", "plc:4840"),
        ("opc.tcp://plc:4841/a/b", "opc.tcp://plc:4841/a/b", "plc:4841"),
        ("opc.tcp://[::1]:4841/", "opc.tcp://[::1]:4841/", "[::1]:4841"),
    ],
)
def test_an_endpoint_is_dialled_as_it_is_written(endpoint, url, where):
    server = OpcuaConnection.load({"endpoint": endpoint}).server(StubContext())

    assert (server.url, server.where) == (url, where)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"security_mode": "Sign"},
         "security_mode: 'security_mode' means nothing without a security policy"),
        ({"certificate": "a.pem"}, "certificate: 'certificate' means nothing without a security policy"),
        ({"private_key": "a.pem"}, "private_key: 'private_key' means nothing without a security policy"),
        ({"application_uri": "urn:a"},
         "application_uri: 'application_uri' means nothing without a security policy"),
        ({"server_certificate": "a.pem"},
         "server_certificate: 'server_certificate' protects nothing: there is neither a security policy nor"
         " a password"),
        ({"security_policy": "Basic256Sha256", "certificate": "a.pem"},
         "security_policy: the security policy Basic256Sha256 needs a 'private_key'"),
        ({"security_policy": "Basic256Sha256", "private_key": "a.pem"},
         "security_policy: the security policy Basic256Sha256 needs a 'certificate'"),
        ({"security_policy": "Basic256", "certificate": "a.pem", "private_key": "a.pem"},
         "security_policy: expected one of None, Basic256Sha256, Aes128_Sha256_RsaOaep,"
         ' Aes256_Sha256_RsaPss, found "Basic256"'),
        ({"security_policy": "Basic128Rsa15", "certificate": "a.pem", "private_key": "a.pem"},
         "security_policy: expected one of None, Basic256Sha256, Aes128_Sha256_RsaOaep,"
         ' Aes256_Sha256_RsaPss, found "Basic128Rsa15"'),
        ({"security_mode": "None"}, 'security_mode: expected one of Sign, SignAndEncrypt, found "None"'),
    ],
)  # fmt: skip
def test_options_that_miss_others_are_refused(options, refusal):
    assert refusals(OpcuaConnection, {"endpoint": URL, **options}) == [refusal]


@pytest.mark.parametrize(("given", "missing"), [("username", "password"), ("password", "username")])
def test_half_a_credential_is_told_of_when_it_is_used(given, missing):
    filed = OpcuaConnection.load({"endpoint": URL, given: "joe"})
    text = f"the connection has a '{given}' and no '{missing}'"

    assert [(fault.message, fault.path) for fault in filed.examine(CheckContext())] == [
        (text, (given,))
    ]
    with pytest.raises(BuildRefused) as refused:
        filed.server(StubContext())
    assert str(refused.value) == text
    assert refused.value.fault.path == ("connection",)


def secured(folder: Path, **options: str) -> OpcuaServer:
    """Return the server of a connection with files in a folder, built there."""
    document = {
        "endpoint": URL,
        "security_policy": "Basic256Sha256",
        "certificate": "ours.der",
        "private_key": "ours.key.pem",
        **options,
    }

    async def built() -> OpcuaServer:
        ctx = StubContext(base=folder)
        return OpcuaConnection.load(document).server(ctx)

    return asyncio.run(built())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with certificates, keys and other things."""
    made = tmp_path_factory.mktemp("opcua")
    Identity(made, "ours")
    Identity(made, "other")
    Identity(made, "nameless", uri=None)
    Identity(made, "old", days=-400)
    (made / "text").write_text("hello")
    os.mkfifo(made / "pipe")
    (made / "folder").mkdir()
    curved = ec.generate_private_key(ec.SECP256R1())
    key = serialization.load_pem_private_key((made / "ours.key.pem").read_bytes(), None)
    for name, kind, each, locked in [
        ("curved.key", serialization.Encoding.PEM, curved, serialization.NoEncryption()),
        ("ours.key.der", serialization.Encoding.DER, key, serialization.NoEncryption()),
        ("locked.key", serialization.Encoding.PEM, key, serialization.BestAvailableEncryption(b"x")),
    ]:  # fmt: skip
        octets = each.private_bytes(kind, serialization.PrivateFormat.PKCS8, locked)  # type: ignore[union-attr]
        (made / name).write_bytes(octets)
    return made


@pytest.mark.parametrize("certificate", ["ours.der", "ours.pem"])
@pytest.mark.parametrize("private_key", ["ours.key.pem", "ours.key.der"])
def test_certificate_and_key_are_pem_or_der(folder, certificate, private_key):
    server = secured(folder, certificate=certificate, private_key=private_key)

    assert server.security is not None
    assert server.security.application_uri == "urn:headrace:test"
    assert (server.security.policy, server.security.mode) == ("Basic256Sha256", "SignAndEncrypt")


def test_the_servers_certificate_may_be_pem_as_well(folder):
    der = (folder / "other.der").read_bytes()

    assert secured(folder, server_certificate="other.pem").certificate == der
    assert secured(folder, server_certificate="other.der").certificate == der


def test_a_server_whose_certificate_is_not_known_is_warned_of(folder):
    ctx = StubContext(base=folder)
    document = {
        "endpoint": URL,
        "security_policy": "Basic256Sha256",
        "certificate": "ours.der",
        "private_key": "ours.key.pem",
    }

    async def built() -> None:
        OpcuaConnection.load(document).server(ctx)

    asyncio.run(built())
    assert ctx.warnings == [
        "the certificate of plc:4840 is not verified: name it as 'server_certificate' in the"
        " connection, so that nobody else can pass for it"
    ]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"certificate": "none.pem"}, "missing-file", "there is no file 'none.pem'"),
        ({"private_key": "none.pem"}, "missing-file", "there is no file 'none.pem'"),
        ({"server_certificate": "none.pem"}, "missing-file", "there is no file 'none.pem'"),
        ({"certificate": "text"}, "unreadable-file", "'text' holds no certificate in PEM or DER format"),
        ({"private_key": "text"}, "unreadable-file", "'text' holds no private key in PEM or DER format"),
        ({"private_key": "ours.pem"}, "unreadable-file",
         "'ours.pem' holds no private key in PEM or DER format"),
        ({"certificate": "ours.key.pem"}, "unreadable-file",
         "'ours.key.pem' holds no certificate in PEM or DER format"),
        ({"private_key": "locked.key"}, "unreadable-file",
         "the key in 'locked.key' is locked with a password"),
        ({"private_key": "curved.key"}, "unreadable-file", "'curved.key' holds a key that is not of RSA"),
        ({"certificate": "pipe"}, "unreadable-file", "'pipe': it is not a regular file"),
        ({"private_key": "folder"}, "unreadable-file", "'folder': it is not a regular file"),
        ({"private_key": "other.key.pem"}, "conflict",
         "the key in 'other.key.pem' is not that of the certificate 'ours.der'"),
        ({"certificate": "nameless.der", "private_key": "nameless.key.pem"}, "conflict",
         "the certificate 'nameless.der' names no application"),
        ({"application_uri": "urn:else"}, "conflict",
         "the certificate 'ours.der' is that of the application 'urn:headrace:test'"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used_are_refused_by_name(folder, options, code, message):
    with pytest.raises(BuildRefused) as refused:
        secured(folder, **options)

    fault = refused.value.fault
    assert (fault.code, fault.message, fault.path) == (code, message, ("connection",))


def test_a_certificate_whose_time_is_over_is_refused(folder):
    with pytest.raises(BuildRefused, match=r"the certificate 'old.der' is valid from .* to .*"):
        secured(folder, certificate="old.der", private_key="old.key.pem")


def test_nothing_secret_is_shown():
    filed = OpcuaConnection.load({"endpoint": "${URL}", "username": "joe", "password": "${PW}"})
    server = filed.server(StubContext(secrets={"URL": URL, "PW": "hunter2"}))

    assert server.password == "hunter2"
    assert "hunter2" not in repr(server)
    assert "joe" not in repr(server)
