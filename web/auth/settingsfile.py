"""The settings file of a server: who may reach it, for how long it remembers, and what is wrong with it.

It is read once, at start, and written by nobody. Nothing over HTTP changes it. No line of it is ever
shown, because a password may stand in any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from headrace.compiler.component.drafts import is_refused, loaded
from headrace.compiler.component.durable import nowhere
from headrace.compiler.config.retention import DEFAULT_RETENTION, MOST_RETENTION
from headrace.compiler.config.storesettings import AS_USUAL, StoreSettings
from headrace.compiler.lint.remarks import taken_literally
from headrace.compiler.schema.fields import (
    Boolean,
    Choice,
    Identifier,
    Integer,
    SecretText,
    refused,
)
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.secrets import Secret, Secrets
from headrace.compiler.schema.structures import ListOf, ObjectOf, RecordOf, settings, settings_of
from headrace.compiler.schema.urls import HttpUrl, ParsedUrl
from headrace.compiler.schema.variants import Tagged, VariantOf
from headrace.compiler.text.diagnostics import (
    Codes,
    Diagnostic,
    Fault,
    Path,
    Severity,
    in_file_order,
    path_text,
    printable,
)
from headrace.compiler.text.documents import Document, Site
from headrace.web.auth.access import Access
from headrace.web.auth.consolesettings import ConsoleSettings
from headrace.web.auth.credentials import NeverShown
from headrace.web.auth.passwords import MOST_PASSWORD, hash_faults

CODES: Codes = {
    "not-a-user-name": "A user name cannot be sent with a password.",
}

_DAY = 24 * 3600
IDLE_SECONDS = 7 * _DAY
MOST_IDLE_SECONDS = 365 * _DAY

_WORD = re.compile(r"[A-Za-z_]{1,40}")
_HASH = "a value with a comma in it, such as a hash, stands in quotes"


class UserName(Identifier):
    """A name to sign in with."""

    expects = "a name that is not blank, without ':' and control characters"

    def read(self, value: Any) -> Any:
        """Take a name that can be sent: in HTTP Basic the first colon ends it (RFC 7617)."""
        name: str = super().read(value)
        if ":" in name or not name.isprintable():
            raise refused(
                "not-a-user-name",
                f"'{printable(name)}' cannot be sent as a user name",
                found=name,
                expected=self.expects,
            )
        return name


class Account(Record):
    """Somebody who signs in with a password."""

    password: Secret | None = option(
        SecretText(), "The password, usually a ${NAME} reference.", default=None
    )
    password_hash: Secret | None = option(
        SecretText(),
        "Instead of the password, its argon2id hash, as `headrace hash-password` prints it.",
        default=None,
        additive=True,
    )
    role: str = option(
        Choice("admin", "read"), "`admin` may change things, `read` may see them.", default="read"
    )

    def __repr__(self) -> str:
        return f"Account(role={self.role!r})"  # a template may be the password itself

    @property
    def access(self) -> Access:
        """The role as a level of access."""
        return Access[self.role.upper()]

    @property
    def secret(self) -> Secret:
        """The password, or its hash."""
        given = self.password if self.password_hash is None else self.password_hash
        assert given is not None
        return given

    def rules(self) -> Iterator[Fault]:
        """Exactly one of password and hash."""
        given = [each for each in (self.password, self.password_hash) if each is not None]
        if not given:
            yield Fault(
                "missing-key",
                "an account needs a password",
                expected="'password', or 'password_hash' with its argon2id hash",
            )
        if len(given) == 2:
            yield Fault(
                "conflict",
                "an account has either a password or the hash of one",
                expected="'password' or 'password_hash', not both",
            )


class AccountsByName(NeverShown, ObjectOf):
    """Accounts by the name they sign in with."""

    names = UserName()

    def __init__(self, *, at_least: int = 0) -> None:
        self.at_least = at_least
        super().__init__(RecordOf(Account), noun="account", null_is_absent=not at_least)

    def read(self, value: Any) -> Any:
        """Read the accounts."""
        accounts = super().read(value)
        if len(accounts) < self.at_least:
            raise refused(
                "out-of-range",
                "there is no account: nobody could sign in",
                found={},
                expected="at least one account, such as { ann: { password: '${ANN_PASSWORD}' } }",
            )
        return accounts


class AuthSettings(Tagged):
    """How people and programs prove who they are."""

    accounts_key: ClassVar[str | None] = None
    """The key that has accounts."""

    @property
    def accounts(self) -> Mapping[str, Account]:
        """The accounts by name; there may be none."""
        return (self.accounts_key and getattr(self, self.accounts_key)) or {}


class NoAuth(AuthSettings, tag="none"):
    """Not at all: everybody may do everything."""


class BasicAuth(AuthSettings, tag="basic"):
    """With a name and a password."""

    accounts_key = "users"

    users: Mapping[str, Account] = option(AccountsByName(at_least=1), "The accounts by name.")


class Roles(Record):
    """Which claim of a token makes its bearer an admin."""

    claim: str = option(Identifier(), "Claim that is compared: a string, or a list of them.")
    admin: tuple[str, ...] = option(
        ListOf(Identifier(), at_least=1, noun="role"), "Values of which one makes an admin."
    )


class JwtAuth(AuthSettings, tag="jwt"):
    """With a token of an identity provider."""

    accounts_key = "service_accounts"

    jwks_url: ParsedUrl = option(HttpUrl(), "Where the provider publishes its signing keys.")
    issuer: str = option(Identifier(), "What a token has to have as `iss`.")
    audience: str | None = option(
        Identifier(),
        "What a token has to have in `aud`; left out, that is not looked at.",
        default=None,
    )
    username_claim: str = option(Identifier(), "Claim that holds the user name.", default="sub")
    roles: Roles | None = option(
        RecordOf(Roles), "Who is an admin; left out, nobody who comes with a token.", default=None
    )
    service_accounts: Mapping[str, Account] | None = option(
        AccountsByName(), "Accounts with a password beside the provider's.", default=None
    )


class HistorySettings(Record):
    """What is recorded of every pipeline."""

    retention_secs: int = option(
        Integer(max=MOST_RETENTION),
        "Seconds that counts and failures are kept; 0: nothing is recorded.",
        default=DEFAULT_RETENTION,
    )
    durable: bool = option(
        Boolean(),
        "Whether counts go on after a restart: every 30 seconds they are written to the store in"
        " --data-dir.",
        default=False,
        additive=True,
        elsewhere="persistent persist retain",
    )

    def rules(self) -> Iterator[Fault]:
        """What is not recorded cannot go on."""
        if self.durable and not self.retention_secs:
            yield Fault(
                "conflict",
                "with 'retention_secs' 0 nothing is recorded that could be 'durable'",
                expected="'retention_secs' of at least 1, or no 'durable'",
            )


class SessionSettings(Record):
    """What a login makes."""

    same_site: str = option(
        Choice("strict", "lax", "none"),
        "When a browser sends the cookie along: `none` also to a page inside another site's, and "
        "then over TLS alone.",
        default="strict",
        additive=True,
    )
    idle_secs: int = option(
        Integer(min=1, max=MOST_IDLE_SECONDS),
        "Seconds without a request after which a session ends.",
        default=IDLE_SECONDS,
        additive=True,
    )


class ServerSettings(Record):
    """The settings file."""

    auth: AuthSettings = option(
        VariantOf(AuthSettings), "Who may reach the server.", default=NoAuth()
    )
    history: HistorySettings = option(
        RecordOf(HistorySettings), "What is recorded of every pipeline.", default=HistorySettings()
    )
    session: SessionSettings = option(
        RecordOf(SessionSettings), "What a login makes.", default=SessionSettings(), additive=True
    )
    console: ConsoleSettings = option(
        RecordOf(ConsoleSettings),
        "The page that people watch.",
        default=ConsoleSettings(),
        additive=True,
    )
    store: StoreSettings = option(
        RecordOf(StoreSettings),
        "How what `durable` names is kept on the disk.",
        default=AS_USUAL,
        additive=True,
    )


def load_settings(
    document: Document,
    secrets: Secrets | None,
    *,
    is_starting: bool,
    has_data_dir: bool = True,
) -> tuple[ServerSettings | None, list[Diagnostic]]:
    """Read the settings of a server, and tell all that is wrong with them.

    Passwords are judged by what ``secrets`` resolves them to, if it is given. Those that nothing
    answers are warned of, unless a server ``is_starting``, which needs them. So is what is to be kept
    where that ``has_data_dir`` not.
    """
    site = Site(document)
    built, values, faults = loaded(ServerSettings, document.value)
    said = [_unquoted(fault, site.diagnose(_without_query(fault))) for fault in faults]
    said += map(site.diagnose, taken_literally(settings(ServerSettings, values)))
    unresolved = Severity.ERROR if is_starting else Severity.WARNING
    if built is not None and built.history.durable and not has_data_dir:
        said.append(site.inside("history").diagnose(nowhere("durable", unresolved)))
    for path, account in _accounts(document.value):
        diagnose = site.inside(*path).diagnose
        said += map(diagnose, taken_literally(settings_of(account)))
        if secrets is not None:
            said += map(diagnose, _wrong_secret(account, secrets, unresolved))
    return None if is_refused(said) else built, in_file_order(said)


def _unquoted(fault: Fault, diagnostic: Diagnostic) -> Diagnostic:
    """Return a diagnostic without what may be the rest of a hash that nobody has put in quotes.

    YAML takes ``{ password_hash: $argon2id$v=19$m=65536,t=3,p=1$...$... }`` for three keys.
    """
    odd = [at for at, step in enumerate(fault.path) if "$" in str(step)]
    if fault.code == "unknown-key" and not _WORD.fullmatch(str(fault.path[-1])):
        odd.append(len(fault.path) - 1)
    if not odd:
        return diagnostic
    return replace(
        diagnostic,
        path=path_text(fault.path[: odd[0]]),
        message="unknown key, which is not shown: it may be a part of a password or of a hash",
        code="unknown-key",
        found=None,
        suggestion=_HASH,
    )


def _without_query(fault: Fault) -> Fault:
    """Return a fault without the query of a url, where some providers take a key."""
    if fault.path != ("auth", "jwks_url") or fault.found is None or "?" not in fault.found:
        return fault
    objection = fault.message[fault.message.rindex(f" is not {fault.expected}") :]
    return replace(fault, message=f"this{objection}", found=None)


def _accounts(value: Any) -> Iterator[tuple[Path, Account]]:
    """Yield the accounts that can be read, whatever else is wrong with the file."""
    keys = {each.tag: each.accounts_key for each in AuthSettings.__subclasses__()}
    match value:
        case {"auth": {"type": str(kind), **options}} if key := keys.get(kind):
            named = options.get(key)
            for name, inner in named.items() if isinstance(named, dict) else ():
                account, _, _ = loaded(Account, inner)
                if account is not None:
                    yield ("auth", key, name), account


def _wrong_secret(account: Account, secrets: Secrets, unresolved: Severity) -> Iterator[Fault]:
    """Yield why the password of an account is none, at its key."""
    key = "password" if account.password_hash is None else "password_hash"
    for fault in secrets.faults(account.secret):
        severity = Severity.ERROR if account.secret.is_broken else unresolved
        yield replace(fault, path=(key,), severity=severity)
        return
    value = secrets.resolve(account.secret)
    wrong = hash_faults(value) if account.password_hash is not None else _wrong_password(value)
    for fault in wrong:
        yield replace(fault, path=(key,))


def _wrong_password(value: str) -> Iterator[Fault]:
    if not value:
        yield Fault(
            "empty-credential",
            "this password is empty: anybody could sign in with the name alone",
            expected="a password",
        )
    if len(value) > MOST_PASSWORD:
        yield Fault(
            "out-of-range",
            f"a password of {len(value):,} characters is too long",
            expected=f"at most {MOST_PASSWORD:,} characters",
        )
