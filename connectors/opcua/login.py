"""Getting in at an OPC UA server: who it is, who we are, how the channel is secured, and how it says no."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from asyncua import ua
from asyncua.crypto import security_policies
from asyncua.crypto.security_policies import SecurityPolicy
from asyncua.crypto.uacrypto import (  # type: ignore[attr-defined]
    InvalidSignature,
    x509_from_der,
)
from asyncua.ua.uaerrors import UaStatusCodeError
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

from headrace.compiler.component.buildcontext import Context
from headrace.connectors.network.refusal import turned_away, unusable
from headrace.connectors.network.tls import readable
from headrace.connectors.opcua import OpcuaConnection
from headrace.connectors.opcua.notifications import STATUSES

POLICIES: dict[str, type[SecurityPolicy]] = {
    "None": security_policies.SecurityPolicyNone,
    "Basic256Sha256": security_policies.SecurityPolicyBasic256Sha256,
    "Aes128_Sha256_RsaOaep": security_policies.SecurityPolicyAes128Sha256RsaOaep,
    "Aes256_Sha256_RsaPss": security_policies.SecurityPolicyAes256Sha256RsaPss,
}
MODES = {
    "None": ua.MessageSecurityMode.None_,
    "Sign": ua.MessageSecurityMode.Sign,
    "SignAndEncrypt": ua.MessageSecurityMode.SignAndEncrypt,
}
_POLICY_NAMES = {policy.URI: name for name, policy in POLICIES.items()}
_MODE_NAMES = {mode: name for name, mode in MODES.items()}
_PREFIX = "http://opcfoundation.org/UA/SecurityPolicy#"

# Servers are written against the first three; the last two are what old ones offer for a password,
# and better than none.
_ENCRYPTING = [_PREFIX + name for name in [*list(POLICIES)[1:], "Basic256", "Basic128Rsa15"]]
_PLAIN = POLICIES["None"].URI

_CREDENTIAL = {"BadUserAccessDenied", "BadIdentityTokenRejected", "BadIdentityTokenInvalid"}
_SECURITY = {"BadSecurityPolicyRejected", "BadSecurityModeRejected", "BadSecurityModeInsufficient"}
_URL = {"BadTcpEndpointUrlInvalid", "BadServerUriInvalid"}


class Shortfall(Exception):
    """What a server lacks or does wrong: its text comes behind the name of the server."""


class SubscriptionEnded(Exception):
    """The server has ended a subscription; the text is the status that it gave."""


@dataclass(frozen=True)
class Security:
    """A policy that is not `None`, with what it needs of us."""

    policy: str
    mode: str
    certificates: tuple[x509.Certificate, ...]
    """Ours, then those of who signed it."""
    private_key: RSAPrivateKey = field(repr=False)
    application_uri: str

    def channel(self, certificate: bytes) -> SecurityPolicy:
        """Return what secures a channel to the owner of a certificate, the first of a chain.

        Raises: ValueError if it is no certificate.
        """
        ours, *chain = self.certificates
        peer = x509_from_der(certificate)  # type: ignore[no-untyped-call]
        make, mode = POLICIES[self.policy], MODES[self.mode]
        return make(peer, ours, self.private_key, mode, host_cert_chain=chain)


@dataclass(frozen=True)
class OpcuaServer:
    """A server, what we show it, and what is to be agreed on with it, for one component."""

    url: str = field(repr=False)
    where: str
    """Its host and port: what texts call it."""
    ctx: Context = field(repr=False)
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    security: Security | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    """The only certificate that it may have, in DER."""

    @property
    def wanted(self) -> str:
        """Policy and mode of the channel."""
        security = self.security
        return "None" if security is None else f"{security.policy} / {security.mode}"

    def check_server(self, certificate: bytes | None) -> None:
        """Refuse a server with another certificate than the one that is known."""
        if self.certificate not in (None, certificate):
            raise turned_away(
                f"{self.where} shows another certificate than that in 'server_certificate'"
            )

    def endpoint(self, offered: Iterable[ua.EndpointDescription]) -> ua.EndpointDescription:
        """Return the endpoint that we want, or refuse with those that there are."""
        offers: dict[str, ua.EndpointDescription] = {}
        for each in offered:
            if (each.EndpointUrl or "").startswith(ua.OPC_TCP_SCHEME):
                offers.setdefault(_described(each), each)
        if self.wanted not in offers:
            there = ", ".join(sorted(offers)) or "none that is known here"
            raise turned_away(
                f"{self.where} has no endpoint with the security '{self.wanted}', only: {there}"
            )
        return offers[self.wanted]

    def check_credential(self, policies: Sequence[ua.UserTokenPolicy]) -> None:
        """Refuse a server that does not take what we have to show."""
        kinds = {policy.TokenType for policy in policies}
        if self.username is None and kinds and ua.UserTokenType.Anonymous not in kinds:
            raise turned_away(
                f"{self.where} lets nobody in without a user",
                "'username' and 'password' in the connection",
            )
        if self.username is not None and ua.UserTokenType.UserName not in kinds:
            raise turned_away(
                f"{self.where} takes no user names", "a connection without 'username'"
            )

    def token_policy(
        self,
        policies: Sequence[ua.UserTokenPolicy],
        token_type: ua.UserTokenType,
        of_channel: str,
        certificate: bytes | None,
    ) -> ua.UserTokenPolicy:
        """Return the policy under which an identity is told: for a password, one that encrypts it.

        The server may offer several, and somebody in between could have taken the better ones away:
        a password that goes out in the clear is warned of.
        """
        offered = [
            replace(each, SecurityPolicyUri=each.SecurityPolicyUri or of_channel)
            for each in policies
            if each.TokenType == token_type
        ]
        if token_type != ua.UserTokenType.UserName:
            return offered[0] if offered else ua.UserTokenPolicy(TokenType=token_type)
        known = [*_ENCRYPTING, _PLAIN]
        usable = [each for each in offered if each.SecurityPolicyUri in known]
        if not usable:
            raise turned_away(
                f"{self.where} wants the password encrypted in a way that is not known here"
            )
        best = min(usable, key=lambda each: known.index(each.SecurityPolicyUri))
        if best.SecurityPolicyUri != _PLAIN and not certificate:
            raise turned_away(
                f"{self.where} wants the password encrypted and shows no certificate to do it with"
            )
        is_secret = self.wanted.endswith("SignAndEncrypt")
        if best.SecurityPolicyUri == _PLAIN and not is_secret:
            self.ctx.warn_once(
                f"the password goes to {self.where} in the clear: the server offers nothing better"
                " without a 'security_policy'"
            )
        return best

    def refusal(self, cause: Exception) -> Exception | None:
        """Return the refusal that a failure is, if it is one that trying again does not mend."""
        if isinstance(cause, InvalidSignature):
            return turned_away(f"{self.where} does not have the key of the certificate it shows")
        if not isinstance(cause, UaStatusCodeError):
            return None
        name = STATUSES[cause.code][0]
        if name in _CREDENTIAL:
            who = "anybody without a user" if self.username is None else "this user and password"
            return turned_away(f"{self.where} does not let in {who} ({name})")
        if name in _SECURITY:
            return turned_away(f"{self.where} does not take the security '{self.wanted}' ({name})")
        if name in _URL:
            return turned_away(f"{self.where} has no endpoint at the path of this url ({name})")
        if self.security and (
            name.startswith("BadCertificate") or name == "BadSecurityChecksFailed"
        ):
            return turned_away(
                f"{self.where} does not take our certificate ({name})",
                "a certificate that the server has been told to trust",
            )
        return None


def _described(endpoint: ua.EndpointDescription) -> str:
    policy = endpoint.SecurityPolicyUri or ""
    name = _POLICY_NAMES.get(policy, policy.removeprefix(_PREFIX))
    if endpoint.SecurityMode == MODES["None"]:
        return name
    return f"{name} / {_MODE_NAMES.get(endpoint.SecurityMode, endpoint.SecurityMode)}"


def reason(cause: Exception) -> str:
    """Return why a server could not be reached, as what comes behind its name."""
    match cause:
        case Shortfall():
            return str(cause)
        case UaStatusCodeError():
            return f"does not take the connection ({STATUSES[cause.code][0]})"
        case ConnectionRefusedError():
            return "does not answer: connection refused"
        case TimeoutError():
            return "does not answer in time"
        case ConnectionError():
            return "hangs up"
        case OSError():
            number = cause.errno or 0
            why = os.strerror(number).lower() if number > 0 else "the host name cannot be resolved"
            return f"does not answer: {why}"
    return "does not answer as an OPC UA server does"


def ended(cause: Exception) -> str:
    """Return how a connection ended that was there, as what comes behind the name of the server."""
    match cause:
        case SubscriptionEnded():
            return f"ended the subscription ({cause})"
        case UaStatusCodeError():
            return f"ended the session ({STATUSES[cause.code][0]})"
        case TimeoutError():
            return "does not answer any more"
    return "hung up" if isinstance(cause, OSError) else "sent what cannot be read"


def security(connection: OpcuaConnection, ctx: Context) -> Security | None:
    """Read the files of a connection and return how it is secured, if it is.

    Raises:
        BuildRefused: a file cannot be read or holds something else, or they do not fit each other.
    """
    file, key_file = connection.certificate, connection.private_key
    if file is None or key_file is None:
        return None
    base = ctx.base or Path()
    certificates = _certificates(base, file)
    key = _key(base, key_file)
    ours = certificates[0]
    if ours.public_key() != key.public_key():
        message = f"the key in '{key_file}' is not that of the certificate '{file}'"
        raise unusable("conflict", message)
    begins, ends = ours.not_valid_before_utc, ours.not_valid_after_utc
    if not begins <= ctx.clock.now() <= ends:
        message = f"the certificate '{file}' is valid from {begins:%Y-%m-%d} to {ends:%Y-%m-%d}"
        raise unusable("conflict", message)
    uri = _application_uri(ours, file, connection.application_uri)
    mode = connection.security_mode or "SignAndEncrypt"
    return Security(connection.security_policy, mode, certificates, key, uri)


def pinned(file: str, ctx: Context) -> bytes:
    """Return the certificate in a file, as a server shows it."""
    return _certificates(ctx.base or Path(), file)[0].public_bytes(serialization.Encoding.DER)


def _certificates(base: Path, file: str) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a file: one in DER, any number in PEM."""
    content = _content(base, file)
    try:
        if b"-----BEGIN" in content:
            found = x509.load_pem_x509_certificates(content)
        else:
            found = [x509.load_der_x509_certificate(content)]
        if not isinstance(found[0].public_key(), RSAPublicKey):
            raise unusable("unreadable-file", f"the certificate '{file}' is not of an RSA key")
    except ValueError:
        raise unusable(
            "unreadable-file", f"'{file}' holds no certificate in PEM or DER format"
        ) from None
    return tuple(found)


def _key(base: Path, file: str) -> RSAPrivateKey:
    content = _content(base, file)
    is_pem = b"-----BEGIN" in content
    load = serialization.load_pem_private_key if is_pem else serialization.load_der_private_key
    try:
        key = load(content, password=None)
    except TypeError:
        raise unusable(
            "unreadable-file", f"the key in '{file}' is locked with a password"
        ) from None
    except ValueError:
        raise unusable(
            "unreadable-file", f"'{file}' holds no private key in PEM or DER format"
        ) from None
    if not isinstance(key, RSAPrivateKey):
        raise unusable("unreadable-file", f"'{file}' holds a key that is not of RSA")
    return key


def _application_uri(ours: x509.Certificate, file: str, wanted: str | None) -> str:
    """Return the name of our application, which servers compare with the certificate."""
    names = [
        name
        for extension in ours.extensions
        if isinstance(extension.value, x509.SubjectAlternativeName)
        for name in extension.value.get_values_for_type(x509.UniformResourceIdentifier)
    ]
    if not names:
        message = f"the certificate '{file}' names no application"
        raise unusable("conflict", message, "a URI among its alternative names, the application's")
    if wanted is not None and wanted not in names:
        message = f"the certificate '{file}' is that of the application '{names[0]}'"
        raise unusable("conflict", message, "the same 'application_uri', or none")
    return wanted or names[0]


def _content(base: Path, file: str) -> bytes:
    try:
        return readable(file, base, "such a file").read_bytes()
    except FileNotFoundError:
        raise unusable("missing-file", f"there is no file '{file}'") from None
    except OSError as cause:
        raise unusable("unreadable-file", f"'{file}': {cause.strerror or cause}") from None
