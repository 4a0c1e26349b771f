"""Of which class the failures of a `kafka` output are, by the name that Kafka, or the driver, gives them.

Those of Kafka are as the driver has them: `MESSAGE_SIZE_TOO_LARGE` for `MESSAGE_TOO_LARGE`, and `UNKNOWN`
for whatever it does not know.
"""

from __future__ import annotations

from headrace.compiler.component.failureclasses import FailureClasses, FailureRow

RETRIABLE = "retriable"
"""Stands for whatever has no row, and is not the answer of a broker that will not change its mind."""
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"

ERROR_CODES = "https://kafka.apache.org/protocol#protocol_error_codes"

FAILURES = FailureClasses(
    FailureRow(
        "not_confirmed",
        "unavailable",
        ("REQUEST_TIMED_OUT",),
        "brokers do not confirm a record in time",
    ),
    FailureRow(
        "no_broker",
        "unavailable",
        ("NodeNotReadyError",),
        "no broker answers, or a connection is lost",
    ),
    FailureRow(
        "retriable",
        "unavailable",
        (
            "LEADER_NOT_AVAILABLE",
            "NOT_LEADER_FOR_PARTITION",
            "NOT_ENOUGH_REPLICAS",
            "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
            "KAFKA_STORAGE_ERROR",
            RETRIABLE,
        ),
        "anything else of which Kafka says that it can be tried again, or that the driver meets",
        ERROR_CODES,
    ),
    FailureRow(
        "unknown_topic",
        "misconfigured",
        (UNKNOWN_TOPIC,),
        "the topic is not there, or not any more, and the brokers make none",
    ),
    FailureRow(
        "topic_not_allowed",
        "misconfigured",
        ("TOPIC_AUTHORIZATION_FAILED",),
        "the user may not write to the topic",
    ),
    FailureRow(
        "not_allowed",
        "misconfigured",
        ("CLUSTER_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"),
        "the user lacks a right that is not about the topic",
        ERROR_CODES,
    ),
    FailureRow(
        "turned_away",
        "misconfigured",
        (),
        "a broker refuses the credential, the certificate, or TLS as it is configured, after the start",
    ),
    FailureRow(
        "internal_topic",
        "misconfigured",
        ("INVALID_TOPIC",),
        "the topic is one that nobody may write to, such as `__consumer_offsets`",
    ),
    FailureRow(
        "too_large",
        "invalid",
        ("MESSAGE_SIZE_TOO_LARGE",),
        "a record is larger than the topic takes (`max.message.bytes`)",
    ),
    FailureRow(
        "larger_than_a_request",
        "invalid",
        (),
        "a record is larger than 100,000,000 bytes: it is not sent",
    ),
    FailureRow(
        "larger_than_a_segment",
        "invalid",
        ("RECORD_LIST_TOO_LARGE",),
        "a record is larger than a file of the topic may be (`segment.bytes`)",
    ),
    FailureRow(
        "invalid_record",
        "invalid",
        ("UNKNOWN",),
        "a record does not suit its topic: a compacted one takes none without a key",
    ),
    FailureRow(
        "invalid_timestamp",
        "invalid",
        ("INVALID_TIMESTAMP",),
        "the time of a record is further from the broker's than the topic takes"
        " (`message.timestamp.before.max.ms` and `.after.max.ms`)",
    ),
    FailureRow(
        "corrupt_record",
        "invalid",
        ("CORRUPT_MESSAGE",),
        "a record arrived damaged, or an old broker finds that it does not suit its topic",
        ERROR_CODES,
    ),
)
"""What has no row and is the answer of a broker is about the content."""
