"""Getting in at an OPC UA server: who it is, who we are, and what it says when it says no."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from asyncua import ua
from asyncua.crypto import security_policies
from asyncua.crypto.security_policies import SecurityPolicy
from asyncua.crypto.uacrypto import (  # type: ignore[attr-defined]
    InvalidSignature,
    x509_from_der,
)
from asyncua.ua.status_codes import code_to_name_doc
from asyncua.ua.uaerrors import UaStatusCodeError

from headrace.compiler.component.buildcontext import Context
from headrace.connectors.network.refusal import turned_away
from headrace.connectors.opcua.security import OpcuaServer

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


class Login:
    """What is to be agreed on with a server, for one component."""

    def __init__(self, server: OpcuaServer, ctx: Context) -> None:
        self.server, self.where, self.ctx = server, server.where, ctx

    @property
    def wanted(self) -> str:
        """Policy and mode of the channel."""
        security = self.server.security
        return "None" if security is None else f"{security.policy} / {security.mode}"

    def policy(self, certificate: bytes) -> SecurityPolicy:
        """Return what secures a channel to the owner of a certificate, the first of a chain.

        Raises: ValueError if it is no certificate.
        """
        security = self.server.security
        assert security is not None
        ours, *chain = security.certificates
        peer = x509_from_der(certificate)  # type: ignore[no-untyped-call]
        make = POLICIES[security.policy]
        return make(peer, ours, security.private_key, MODES[security.mode], host_cert_chain=chain)

    def check_server(self, certificate: bytes | None) -> None:
        """Refuse a server with another certificate than the one that is known."""
        if self.server.certificate not in (None, certificate):
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

    def credential(self, policies: Sequence[ua.UserTokenPolicy]) -> tuple[str | None, str | None]:
        """Return user and password, if the server takes what we have to show."""
        kinds = {policy.TokenType for policy in policies or ()}
        if self.server.username is None and kinds and ua.UserTokenType.Anonymous not in kinds:
            raise turned_away(
                f"{self.where} lets nobody in without a user",
                "'username' and 'password' in the connection",
            )
        if self.server.username is not None and ua.UserTokenType.UserName not in kinds:
            raise turned_away(
                f"{self.where} takes no user names", "a connection without 'username'"
            )
        return self.server.username, self.server.password

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
            ua.UserTokenPolicy(
                each.PolicyId,
                each.TokenType,
                each.IssuedTokenType,
                each.IssuerEndpointUrl,
                each.SecurityPolicyUri or of_channel,
            )
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
        name = named(cause)
        if name in _CREDENTIAL:
            who = (
                "anybody without a user"
                if self.server.username is None
                else "this user and password"
            )
            return turned_away(f"{self.where} does not let in {who} ({name})")
        if name in _SECURITY:
            return turned_away(f"{self.where} does not take the security '{self.wanted}' ({name})")
        if name in _URL:
            return turned_away(f"{self.where} has no endpoint at the path of this url ({name})")
        if self.server.security and (
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


def named(cause: UaStatusCodeError) -> str:
    """Return the name of a status that a server answered with."""
    known = code_to_name_doc.get(cause.code & 0xFFFF_0000)
    return known[0] if known else f"0x{cause.code:08X}"


def reason(cause: Exception) -> str:
    """Return why a server could not be reached, as what comes behind its name."""
    if isinstance(cause, Shortfall):
        return str(cause)
    if isinstance(cause, UaStatusCodeError):
        return f"does not take the connection ({named(cause)})"
    if isinstance(cause, ConnectionRefusedError):
        return "does not answer: connection refused"
    if isinstance(cause, TimeoutError):
        return "does not answer in time"
    if isinstance(cause, ConnectionError):
        return "hangs up"
    if isinstance(cause, OSError):
        number = cause.errno or 0
        why = os.strerror(number).lower() if number > 0 else "the host name cannot be resolved"
        return f"does not answer: {why}"
    return "does not answer as an OPC UA server does"


def ended(cause: Exception) -> str:
    """Return how a connection ended that was there, as what comes behind the name of the server."""
    if isinstance(cause, SubscriptionEnded):
        return f"ended the subscription ({cause})"
    if isinstance(cause, UaStatusCodeError):
        return f"ended the session ({named(cause)})"
    if isinstance(cause, TimeoutError):
        return "does not answer any more"
    return "hung up" if isinstance(cause, OSError) else "sent what cannot be read"
