"""Which failures of the S3 output are of which class: by the codes of answers, or else by their status."""

from __future__ import annotations

from headrace.compiler.component.failureclasses import FailureClasses, FailureRow

LIST = "https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"
"""Where AWS lists what S3 answers."""
NO_ANSWER = "no answer"
REDIRECTED = "3xx"
TLS_BROKEN = "TLS handshake"
NOT_S3 = "no S3"

FAILING = FailureRow(
    "failing",
    "unavailable",
    ("InternalError", "5xx"),
    "the store says that something went wrong there",
)
BUSY = FailureRow(
    "busy",
    "unavailable",
    (
        "SlowDown",
        "ServiceUnavailable",
        "ThrottlingException",
        "TooManyRequests",
        "RequestTimeout",
        "RequestTimeTooSkewed",
        "OperationAborted",
        "ConditionalRequestConflict",
        408,
        429,
    ),
    "the store asks to wait, or did not come to it",
    source=LIST,
)
NO_BUCKET = FailureRow("no_bucket", "misconfigured", ("NoSuchBucket",), "there is no such bucket")
WRONG_KEY = FailureRow(
    "wrong_key",
    "misconfigured",
    ("InvalidAccessKeyId", "SignatureDoesNotMatch"),
    "the access key is none, or its secret is another one",
)
KEY_OVER = FailureRow(
    "key_over",
    "misconfigured",
    (
        "AccountProblem",
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "InvalidSecurity",
        "InvalidToken",
        "NotSignedUp",
        "RequestExpired",
        "TokenRefreshRequired",
    ),
    "the account, the region or the time of the key is not right",
    source=LIST,
)
DENIED = FailureRow(
    "denied",
    "misconfigured",
    ("AccessDenied", "AllAccessDisabled", "Forbidden", 403),
    "the key may not write there",
    source=LIST,
)

TOO_LONG = FailureRow(
    "part",
    "invalid",
    ("KeyTooLongError",),
    "the store refuses one part, whatever it does with others",
)
TOO_LARGE = FailureRow(
    "part_too_large",
    "invalid",
    ("EntityTooLarge", 413),
    "a part is larger than the store takes",
    source=LIST,
)

FAILURES = FailureClasses(
    FailureRow("away", "unavailable", (NO_ANSWER,), "the store does not answer"),
    FAILING,
    BUSY,
    NO_BUCKET,
    WRONG_KEY,
    KEY_OVER,
    DENIED,
    FailureRow(
        "elsewhere",
        "misconfigured",
        (REDIRECTED, 401, 404, 407),
        "the bucket is elsewhere, or something stands before the store",
        source=LIST,
    ),
    FailureRow(
        "no_store",
        "misconfigured",
        (TLS_BROKEN, NOT_S3),
        "there is no TLS as it is configured, or something else than a store answers",
    ),
    FailureRow(
        "damaged",
        "unavailable",
        ("BadDigest", "IncompleteBody", "XAmzContentSHA256Mismatch"),
        "a part did not arrive as it was sent",
        source=LIST,
    ),
    TOO_LONG,
    TOO_LARGE,
)

PASSING: frozenset[str | int] = frozenset((*FAILING.codes, *BUSY.codes))
"""Codes of answers that will be others in a while."""
OF_ALL: frozenset[str | int] = frozenset((*NO_BUCKET.codes, *WRONG_KEY.codes, *KEY_OVER.codes))
"""Codes of answers that are about who asks, when, and of which bucket, so that others would be the same."""

OF_ONE: frozenset[str | int] = frozenset((*TOO_LONG.codes, *TOO_LARGE.codes))
"""Codes of answers that are about one part, which would have the same one each time."""


def codes_of(code: str, status: int) -> tuple[str | int, ...]:
    """Return by which codes an answer is looked up, the most exact first."""
    return code, status, f"{status // 100}xx"
