"""The object store of the tests, asked by the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.exceptions import ClientError, SSLError

from tests.s3_sides import asking
from tests.services.authority import Authority
from tests.services.s3 import BUCKET, S3


@pytest.mark.long
async def test_an_object_survives_a_killed_server(tmp_path: Path) -> None:
    with S3(tmp_path) as server:
        async with asking(server) as client:
            await client.put_object(Bucket=BUCKET, Key="a/b.txt", Body=b"kept")

        server.kill()
        server.restart()

        async with asking(server) as client:
            found = await client.get_object(Bucket=BUCKET, Key="a/b.txt")
            assert await found["Body"].read() == b"kept"
        assert (server.objects / "a" / "b.txt").read_bytes() == b"kept"


@pytest.mark.parametrize(
    ("key", "secret", "code"),
    [
        ("AKIDSOMEBODY", None, "InvalidAccessKeyId"),
        (None, "another", "SignatureDoesNotMatch"),
    ],
)
async def test_whoever_has_the_key_gets_in(object_store: S3, key, secret, code) -> None:
    async with asking(object_store, key=key, secret=secret) as client:
        with pytest.raises(ClientError) as refused:
            await client.list_objects_v2(Bucket=BUCKET)

    assert refused.value.response["Error"]["Code"] == code


async def test_tls_is_for_whoever_trusts_the_authority(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    with S3(tmp_path / "s3", tls=authority) as server:
        async with asking(server) as client:
            await client.head_bucket(Bucket=BUCKET)
        async with asking(server, trusts=stranger) as client:
            with pytest.raises(SSLError, match="CERTIFICATE_VERIFY_FAILED"):
                await client.head_bucket(Bucket=BUCKET)
