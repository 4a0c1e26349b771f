"""TLS of the connections: which options go together, which files do, and who is to blame."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from contextlib import asynccontextmanager

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BuildRefused
from headrace.connectors.network.tls import TlsConnection, tls_fault
from tests.doubles import StubContext, refusals
from tests.services.authority import Authority


class Secured(TlsConnection, kind="secured"):
    """A connection with these options alone."""


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Give an authority that nobody has heard of."""
    return Authority(tmp_path_factory.mktemp("other"))


@asynccontextmanager
async def listening(tls=None, *, hangs_up=False):
    """Give the port of a server that says nothing, or hangs up at once."""

    async def served(reader, writer):
        try:
            if not hangs_up:
                await reader.read(1)
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


def server_tls(authority, *, mutual=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.server_cert_file, authority.server_key_file)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.ca_file)
    return context


def trusting(authority, *, presents=None, base=None):
    """Return the TLS context of a connection that trusts an authority."""
    files = {"ca_file": str(authority.ca_file)}
    if presents is not None:
        files["cert_file"] = str(presents.client_cert_file)
        files["key_file"] = str(presents.client_key_file)
    return Secured(tls=True, **files).tls_context(StubContext(base=base))


async def told(port, tls):
    said = await tls_fault("127.0.0.1", port, tls, Clock(asyncio.get_running_loop()))
    return None if said is None else said.replace(f"127.0.0.1:{port}", "HOST")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ca_file": "ca.pem"}, "ca_file: 'ca_file' means nothing without TLS"),
        ({"cert_file": "c.pem"}, "cert_file: 'cert_file' means nothing without TLS"),
        ({"tls": True, "key_file": "k.pem"}, "key_file: 'key_file' is the key of no certificate"),
        ({"tls": True, "ca_file": ""}, "ca_file: this must not be blank"),
        ({"tls": "yes"}, 'tls: expected true or false, found "yes"'),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, said):
    assert any(said in each for each in refusals(Secured, options))


async def test_the_authority_that_signed_is_trusted_and_no_other(authority, other):
    async with listening(server_tls(authority)) as port:
        assert await told(port, trusting(authority)) is None
        refused = await told(port, trusting(other))

    assert refused is not None
    assert refused.startswith("the certificate of HOST is not trusted: ")


async def test_a_relative_path_starts_at_the_directory_of_the_config(authority):
    files = Secured(tls=True, ca_file="ca.pem")

    files.tls_context(StubContext(base=authority.ca_file.parent))

    with pytest.raises(BuildRefused, match=r"there is no file 'ca\.pem'"):
        files.tls_context(StubContext())


async def test_a_certificate_is_presented_where_one_is_asked_for(authority, other):
    async with listening(server_tls(authority, mutual=True)) as port:
        assert await told(port, trusting(authority, presents=authority)) is None
        without = await told(port, trusting(authority))
        strange = await told(port, trusting(authority, presents=other))

    for said in (without, strange):
        assert (
            said
            == "HOST hangs up after the TLS handshake: it may ask for a certificate that it trusts"
        )


async def test_tls_and_plaintext_do_not_meet(authority):
    async with listening() as plain, listening(server_tls(authority)) as secured:
        assert await told(plain, trusting(authority)) == "HOST does not speak TLS"
        said = await told(secured, None)

    assert said == "HOST speaks TLS, and the connection does not"


async def test_who_hangs_up_on_a_handshake_does_not_speak_tls(authority):
    async with listening(hangs_up=True) as port:
        assert await told(port, trusting(authority)) == "HOST does not speak TLS"
        assert await told(port, None) is None


async def test_who_says_nothing_may_just_hang(authority):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        assert await told(port, trusting(authority)) is None
        assert await told(port, None) is None


async def test_who_does_not_listen_is_not_to_blame(authority):
    with socket.socket() as unbound:
        unbound.bind(("127.0.0.1", 0))
        port = unbound.getsockname()[1]

        assert await told(port, trusting(authority)) is None
        assert await told(port, None) is None


@pytest.mark.parametrize(
    ("option", "content", "said"),
    [
        ("ca_file", None, "there is no file 'x.pem'"),
        ("ca_file", "no certificate", "'x.pem' holds no certificate in PEM format"),
        ("ca_file", "", "'x.pem' holds no certificate in PEM format"),
        ("cert_file", "no certificate", "'x.pem' holds no certificate with a key that fits"),
    ],
)
async def test_a_file_that_is_something_else_refuses_the_component(tmp_path, option, content, said):
    if content is not None:
        (tmp_path / "x.pem").write_text(content)

    with pytest.raises(BuildRefused) as refused:
        Secured(tls=True, **{option: "x.pem"}).tls_context(StubContext(base=tmp_path))

    assert str(refused.value).startswith(said)
    assert refused.value.fault.path == ("connection",)


async def test_a_directory_is_no_certificate(tmp_path):
    (tmp_path / "folder").mkdir()

    with pytest.raises(BuildRefused, match=r"'folder'"):
        Secured(tls=True, ca_file="folder").tls_context(StubContext(base=tmp_path))


@pytest.mark.parametrize("option", ["ca_file", "cert_file", "key_file"])
async def test_a_pipe_is_refused_and_not_waited_for(authority, tmp_path, option):
    os.mkfifo(tmp_path / "pipe")
    files = {"cert_file": str(authority.client_cert_file), option: "pipe"}

    with pytest.raises(BuildRefused, match=r"not a regular file"):
        Secured(tls=True, **files).tls_context(StubContext(base=tmp_path))


async def test_a_key_of_another_certificate_or_with_a_password_refuses(authority, other):
    files = {"cert_file": str(authority.client_cert_file), "key_file": str(other.client_key_file)}

    with pytest.raises(BuildRefused, match="holds no certificate with a key that fits"):
        Secured(tls=True, **files).tls_context(StubContext())
