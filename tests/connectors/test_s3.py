"""The `s3` connection and output as a config has them: what loads, what is refused, and in which words."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.errors import BuildRefused, UnresolvedSecret
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.s3 import S3Connection, S3Output
from headrace.connectors.s3.objectkeys import partition_of
from headrace.connectors.s3.sink import S3Sink
from tests.doubles import StubContext, refusals
from tests.s3_sides import connection, context, output, sink
from tests.services.authority import Authority

KEYS = {"access_key_id": "${KEY}", "secret_access_key": "${SECRET}"}
PREFIX = "expected steps joined by '/', none of them '.' or '..', found"
BUCKET = "cannot be the name of a bucket"


def refused(ctx: StubContext) -> Fault:
    """Return why the output is refused at build."""
    with pytest.raises(BuildRefused) as cause:
        sink(ctx)
    return cause.value.fault


# The connection


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({}, "bucket: this key is required"),
        ({"bucket": " "}, "bucket: this must not be blank"),
        ({"bucket": "ab"}, f'bucket: "ab" {BUCKET}'),
        ({"bucket": "a/b"}, f'bucket: "a/b" {BUCKET}'),
        ({"bucket": "..."}, f'bucket: "..." {BUCKET}'),
        ({"bucket": "plant", "region": "eu_1"}, 'region: "eu_1" cannot be the name of a region'),
        ({"bucket": "plant", "region": "-eu"}, 'region: "-eu" cannot be the name of a region'),
        (
            {"bucket": "plant", "endpoint": "store:9000"},
            'endpoint: "store:9000" is not an absolute http or https url: it does not begin with'
            " http:// or https://",
        ),
        (
            {"bucket": "plant", "endpoint": "https://key:secret@store/"},
            "endpoint: the endpoint has user info, and the keys have options of their own",
        ),
        (
            {"bucket": "plant", "endpoint": "https://store/?x=1"},
            "endpoint: the endpoint has a query, and so has every request",
        ),
        (
            {"bucket": "plant", "endpoint": "HTTP://store", "ca_file": "ca.pem"},
            "ca_file: 'ca_file' means nothing without TLS",
        ),
        ({"bucket": "plant", "profile": "x"}, "profile: unknown key 'profile'"),
    ],
)
def test_what_the_connection_refuses(options, refusal):
    assert refusals(S3Connection, KEYS | options) == [refusal]


@pytest.mark.parametrize("bucket", ["abc", "my.bucket-1", "Old_Bucket", "a" * 255])
def test_names_that_buckets_have(bucket):
    assert refusals(S3Connection, KEYS | {"bucket": bucket}) == []


def test_the_connection_is_shown_with_its_references():
    lake = connection("https://store.example.org/")

    assert lake.dump() == {
        "type": "s3",
        "bucket": "plant",
        "access_key_id": "${KEY}",
        "secret_access_key": "${SECRET}",
        "endpoint": "https://store.example.org/",
        "allow_http": True,
    }


@pytest.mark.parametrize("url", ["http://store:9000", "HTTP://store:9000"])
def test_an_endpoint_without_tls_has_to_be_allowed(url):
    fault = Fault(
        "conflict",
        f"the endpoint '{url}' is one without TLS",
        found=url,
        expected="an https:// url, or 'allow_http: true'",
        path=("endpoint",),
    )

    assert list(connection(url, allow_http=False).examine(CheckContext())) == [fault]
    built = refused(context(url, connection={"allow_http": False}))
    assert (built.message, built.path) == (fault.message, ("connection",))
    assert list(connection(url).examine(CheckContext())) == []
    assert list(connection("https://store").examine(CheckContext())) == []


@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        ({"KEY": ""}, "'access_key_id' resolves to nothing"),
        ({"SECRET": ""}, "'secret_access_key' resolves to nothing"),
        (
            {"KEY": "AKID\r\nX-Evil: 1"},
            "'access_key_id' resolves to what no key is: it holds a blank or another such character",
        ),
        (
            {"SECRET": "secret\n"},
            "'secret_access_key' resolves to what no key is: it holds a blank or another such"
            " character",
        ),
    ],
)
def test_keys_that_cannot_be_are_refused_and_not_shown(secrets, said):
    assert refused(context("https://store", secrets=secrets)).message == said


def test_a_key_has_to_resolve():
    ctx = StubContext(connections={"lake": connection("https://store")})

    with pytest.raises(UnresolvedSecret):
        output().open(ctx)


def test_an_authority_has_to_be_there(tmp_path):
    ctx = context("https://store", connection={"ca_file": "ca.pem"}, base=tmp_path)

    assert refused(ctx).message == "there is no file 'ca.pem', or none of its key"


async def test_an_authority_is_found_beside_the_config(tmp_path, authority: Authority):
    (tmp_path / "ca.pem").write_bytes(authority.ca_file.read_bytes())

    made = sink(context("https://store", connection={"ca_file": "ca.pem"}, base=tmp_path))

    assert isinstance(made, S3Sink)


def test_no_account_shows_its_keys():
    account = connection("https://store").account(context("https://store"))

    assert "AKID" not in repr(account)
    assert "secret" not in repr(account)


# The output


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (
            {"prefix": None},
            "prefix: expected steps joined by '/', none of them '.' or '..', found null",
        ),
        ({"prefix": "../up"}, f'prefix: {PREFIX} "../up"'),
        ({"prefix": "/a/./b"}, f'prefix: {PREFIX} "a/./b"'),
        ({"prefix": "a\tb"}, "prefix: a key holds no control characters"),
        (
            {"prefix": "/".join(["ü" * 68] * 7) + "/p"},
            "prefix: 961 bytes are too many before the name of an object",
        ),
        (
            {"prefix": "/".join(["p" * 157] * 6), "partition": "year=%Y%j"},
            "prefix: 961 bytes are too many before the name of an object",
        ),
        (
            {"rotate": None},
            "rotate: expected an object with any of 'interval_secs', 'max_rows', found null",
        ),
        ({"rotate": {}}, "rotate: nothing says when a part is uploaded"),
        (
            {"rotate": {"interval_secs": 0}},
            "rotate.interval_secs: "
            "expected an integer of at least 1 and of at most 1000000000, found 0",
        ),
        (
            {"rotate": {"max_rows": -1}},
            "rotate.max_rows: "
            "expected an integer of at least 0 and of at most 1000000000, found -1",
        ),
        (
            {"rotate": {"max_rows": 10**30}},
            "rotate.max_rows: "
            f"expected an integer of at least 0 and of at most 1000000000, found {10**30}",
        ),
        ({"prefix": "a//b"}, 'prefix: "a//b" has an empty step, which not every store takes'),
        ({"prefix": "a/" + "ü" * 128}, "prefix: a step of 256 bytes is too long"),
        ({"partition": "b" * 252 + "%Y"}, "partition: a step of 256 bytes is too long"),
        (
            {"partition": "%Y//%m"},
            'partition: "%Y//%m" has an empty step, which not every store takes',
        ),
        (
            {"partition": "y=%Y\t"},
            'partition: "y=%Y\\t" has blanks around it, which would be left out',
        ),
        (
            {"partition": "/ y=%Y/"},
            'partition: "/ y=%Y/" has blanks around it, which would be left out',
        ),
        (
            {"format": "xml"},
            'format: expected one of ndjson, json_array, text, csv, found "xml"',
        ),
        ({"compression": "lz4"}, 'compression: expected one of none, gzip, zstd, found "lz4"'),
        ({"partition": ""}, "partition: this must not be blank"),
        ({"partition": " / "}, "partition: this must not be blank"),
        ({"partition": "day=%D"}, "partition: '%D' is no directive of a partition"),
        ({"partition": "%-d"}, "partition: '%-' is no directive of a partition"),
        ({"partition": "100%"}, "partition: '%' is no directive of a partition"),
        ({"partition": "%%Y"}, "partition: '%%' is no directive of a partition"),
        (
            {"partition": "%Y/../%m"},
            "partition: expected steps such as 'year=%Y/month=%m', with %Y, %m, %d, %j, %H, %M,"
            ' found "%Y/../%m"',
        ),
        (
            {"max_buffered_bytes": 1000},
            "max_buffered_bytes: expected an integer of at least 1048576 and of at most"
            " 68719476736, found 1000",
        ),
        ({"path": "x"}, "path: unknown key 'path'"),
    ],
)
def test_what_the_output_refuses(options, refusal):
    document = {"connection": "lake", "prefix": "", "rotate": {"max_rows": 1}} | options

    assert refusals(S3Output, document) == [refusal]


def test_prefix_and_rotation_have_to_be_given():
    assert refusals(S3Output, {"connection": "lake"}) == [
        "prefix: this key is required",
        "rotate: this key is required",
    ]


def test_each_directive_of_a_partition_is_a_number_of_fixed_width():
    first = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    assert partition_of("%Y/%m/%d/%j/%H/%M", first) == "2026/01/02/002/03/04"
    assert partition_of("ä=%Y%m", first) == "ä=202601"
    assert partition_of(None, first) == ""


async def test_building_makes_and_asks_nothing(tmp_path: Path):
    sink(context("http://127.0.0.1:1", data_dir=tmp_path))

    assert os.listdir(tmp_path) == []
