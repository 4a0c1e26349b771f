"""The mapping `hash`: of a text, with a key or without."""

import base64
import hashlib
import hmac
import re
from uuid import UUID

import pytest

from headrace.compiler.code import Code
from headrace.compiler.errors import BuildRefused
from headrace.operators.map import Map
from tests.doubles import StubContext, refusals
from tests.operators.mappings import a_map

KEY = "a-key-that-nobody-has"


def hashed(algorithm="sha256", **options):
    return {"type": "hash", "from": "x", "algorithm": algorithm, **options}


def digest(algorithm, text):
    if algorithm == "hmac_sha256":
        return hmac.digest(KEY.encode(), text, "sha256")
    return hashlib.new(algorithm, text).digest()


@pytest.fixture
def ctx():
    return StubContext(place="transforms[0]", secrets={"KEY": KEY, "SHORT": "too short"})


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "hmac_sha256"])
@pytest.mark.parametrize(
    ("value", "text"),
    [("abc", b"abc"), ("", b""), ("ä", "ä".encode()), (5, b"5"), (1.0, b"1.0"), (True, b"true")],
)
def test_a_hash_is_that_of_the_text_as_utf_8(mapped, algorithm, value, text):
    key = {"key": "${KEY}"} if algorithm == "hmac_sha256" else {}
    made = digest(algorithm, text)

    def of(to):
        return mapped(a_map(hashed(algorithm, to=to, **key)), {"x": value})["x"]

    assert of("hex") == made.hex()
    assert base64.b64decode(of("base64"), validate=True) == made
    uuid = UUID(of("uuid"))
    assert (uuid.version, uuid.variant, str(uuid)) == (8, "specified in RFC 4122", of("uuid"))
    assert uuid.hex[:12] == made.hex()[:12]


def test_half_of_a_pair_of_surrogates_has_a_hash_as_well(mapped):
    assert len(mapped(a_map(hashed()), {"x": "\ud800"})["x"]) == 64


@pytest.mark.parametrize(
    ("value", "failure"),
    [
        ([1], "field 'x': cannot read a list as text: expected a string, number or boolean"),
        ("a" * 1_048_577, "field 'x' has more than 1,048,576 characters"),
    ],
)
def test_what_does_not_fit_fails_the_batch(mapped, value, failure):
    assert mapped(a_map(hashed()), {"x": value}) == f"mapping 0 ('hash'): {failure}"


@pytest.mark.parametrize(
    ("mapping", "reasons"),
    [
        (hashed(key="${KEY}"), ["mappings[0].key: 'sha256' has no key"]),
        (hashed("hmac_sha256"), ["mappings[0]: 'hmac_sha256' needs a 'key'"]),
        (
            hashed("hmac_sha256", key="fifteen letters"),
            ["mappings[0].key: the key of a 'hmac_sha256' has less than 16 characters"],
        ),
        (
            hashed("md5"),
            ['mappings[0].algorithm: expected one of sha256, sha512, hmac_sha256, found "md5"'],
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(mapping, reasons):
    assert refusals(Map, a_map(mapping)) == reasons


@pytest.mark.parametrize("build", ["step", "plain"])
def test_a_key_that_does_not_resolve_or_is_too_short_is_refused_at_the_build(ctx, build):
    for name, said in (
        ("NONE", "nothing resolves '${NONE}': looked in the environment and the secrets file"),
        ("SHORT", "the key of a 'hmac_sha256' has less than 16 characters"),
    ):
        mapping = Map.load(a_map(hashed("hmac_sha256", key=f"${{{name}}}")))
        with pytest.raises(BuildRefused, match=re.escape(said)) as refused:
            mapping.step(ctx) if build == "step" else mapping.paced(ctx)
        assert refused.value.fault.path[:2] == ("mappings", 0)


class Playing(StubContext):
    """A context in which nothing is resolved."""

    def resolve(self, secret):
        return secret.template


def test_in_a_play_the_reference_is_the_key_however_short_it_is():
    mapping = Map.load(a_map(hashed("hmac_sha256", key="${K}")))

    [[made]] = mapping.step(Playing())([{"x": "abc"}])

    assert made["x"] == hmac.digest(b"${K}", b"abc", "sha256").hex()


def test_the_key_is_in_no_dump_and_in_no_generated_source(ctx):
    mapping = Map.load(a_map(hashed("hmac_sha256", key="${KEY}")))
    mapping.step(ctx)
    code = Code({}, is_hopeful=True)
    mapping.generate(code, ctx)

    assert "hash_c3(x_1)" in (source := " ".join(code.source()))
    assert KEY not in source
    assert mapping.dump()["mappings"][0]["key"] == "${KEY}"
    assert ctx.redact(f"it was {KEY}") == "it was ${KEY}"


@pytest.mark.parametrize("field", ["id", "customer_id", "user.email", "customerId", "ip"])
def test_a_bare_hash_of_a_short_id_is_told_to_be_no_pseudonym(field):
    [said] = Map.load(a_map(hashed() | {"from": field})).examine(None)

    assert (said.code, said.severity, said.path) == (
        "guessable-hash",
        "warning",
        ("mappings", 0, "algorithm"),
    )
    assert said.message == (
        f"the hash of '{field}' is no pseudonym: who can list its values can hash them all"
    )
    keyed = hashed("hmac_sha256", key="${KEY}") | {"from": field}
    assert [*Map.load(a_map(keyed)).examine(None)] == []


def test_that_of_a_whole_text_is_not():
    assert [*Map.load(a_map(hashed() | {"from": "body"})).examine(None)] == []
