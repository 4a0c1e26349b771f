"""The built page: its files, and the policy that browsers hold it to.

`scripts/console.py` builds it. A server whose page was not built serves everything else.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

BUILT = Path(__file__).parent / "built"
COMPRESSED = ".gz"

_TEXT = "; charset=utf-8"
MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".css": f"text/css{_TEXT}",
        ".js": f"text/javascript{_TEXT}",
        ".svg": f"image/svg+xml{_TEXT}",
        ".woff2": "font/woff2",
    }
)
"""By the ending of a name; a file that ends in something else is not served."""

# The editor and the canvas write style attributes, hence 'unsafe-inline' for those alone; a style sheet
# that the editor makes has the nonce. Svelte makes its templates under the policy of its name.
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'nonce-{nonce}'",
        "style-src-attr 'unsafe-inline'",
        "font-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "{framed}",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html headrace-worker",
    ]
)
_NONCE = '<meta name="csp-nonce" content="'


@dataclass(frozen=True, slots=True)
class Page:
    """The page as one browser gets it: a nonce is for one answer."""

    html: bytes
    policy: str


def page(framed: str) -> Page | None:
    """Return the page with the directive that says who may show it in a frame; None: it is not built."""
    try:
        html = (BUILT / "index.html").read_text()
    except FileNotFoundError:
        return None
    nonce = secrets.token_urlsafe(16)
    return Page(
        html.replace(_NONCE, _NONCE + nonce, 1).encode(),
        _POLICY.format(nonce=nonce, framed=framed),
    )


def asset(name: str, *, compressed: bool) -> tuple[bytes, bool] | None:
    """Return a file that the page loads, and whether it is compressed; None: there is none.

    Names are looked up, never joined to a path as they come. They are read anew each time: a page may be
    built while the server runs.
    """
    try:
        there = {file.name: file for file in BUILT.glob("console/*")}
        if name not in there or Path(name).suffix not in MEDIA_TYPES:
            return None
        compressed = compressed and name + COMPRESSED in there
        return there[name + COMPRESSED * compressed].read_bytes(), compressed
    except FileNotFoundError:  # another page has taken its place just now
        return None
