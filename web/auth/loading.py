"""Reading the settings file: what it says, and everything that is wrong with it.

No line of it is ever shown, because a password may stand in any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from headrace.compiler.component.drafts import is_refused, loaded
from headrace.compiler.lint.remarks import taken_literally
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.schema.structures import settings, settings_of
from headrace.compiler.text.diagnostics import (
    Diagnostic,
    Fault,
    Path,
    Severity,
    in_file_order,
    path_text,
)
from headrace.compiler.text.documents import Document, Site
from headrace.web.auth.passwords import MOST_PASSWORD, hash_faults
from headrace.web.auth.settingsfile import Account, AuthSettings, ServerSettings

_WORD = re.compile(r"[A-Za-z_]{1,40}")
_HASH = "a value with a comma in it, such as a hash, stands in quotes"


def load_settings(
    document: Document, secrets: Secrets | None, *, is_starting: bool
) -> tuple[ServerSettings | None, list[Diagnostic]]:
    """Read the settings of a server, and tell all that is wrong with them.

    Passwords are judged by what ``secrets`` resolves them to, if it is given. Those that nothing
    answers are warned of, unless a server ``is_starting``, which needs them.
    """
    site = Site(document)
    built, values, faults = loaded(ServerSettings, document.value)
    said = [_unquoted(fault, site.diagnose(_without_query(fault))) for fault in faults]
    said += map(site.diagnose, taken_literally(settings(ServerSettings, values)))
    for path, account in _accounts(document.value):
        said += map(site.inside(*path).diagnose, taken_literally(settings_of(account)))
    if secrets is not None:
        unresolved = Severity.ERROR if is_starting else Severity.WARNING
        for path, account in _accounts(document.value):
            wrong = _wrong_secret(account, secrets, unresolved)
            said += map(site.inside(*path).diagnose, wrong)
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
    auth = value.get("auth") if isinstance(value, dict) else None
    if not isinstance(auth, dict):
        return
    keys = {each.tag: each.accounts_key for each in AuthSettings.__subclasses__()}
    key = keys.get(str(auth.get("type")))
    named = auth.get(key) if key is not None else None
    for name, inner in named.items() if isinstance(named, dict) else ():
        account, _, _ = loaded(Account, inner)
        if account is not None:
            yield ("auth", str(key), name), account


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
