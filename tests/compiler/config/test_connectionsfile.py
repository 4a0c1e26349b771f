"""The files beside a config, and the names that lead into them."""

import json
from pathlib import Path

import pytest

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Connection
from headrace.compiler.config.connectionsfile import (
    ConnectionsFile,
    companion,
    connection_fault,
    load_connection,
    load_connections,
    load_secrets,
    misnamed,
    secret_faults,
)
from headrace.compiler.schema.fields import Text
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret, Secrets
from headrace.compiler.schema.structures import settings_of
from headrace.compiler.text.diagnostics import Fault
from headrace.compiler.text.documents import read
from tests.compiler.catalogued import (
    CATALOGUE,
    Bucket,
    Gate,
    Mill,
    Spring,
    Well,
    Wheel,
    plain,
    written,
)

FILED = {"yard": Well(host="a"), "barn": Well(host="b"), "brook": Mill(host="c")}


def told(text, secrets=None):
    connections, diagnostics = load_connections(written(text), CATALOGUE, secrets)
    return connections, plain(diagnostics)


@pytest.mark.parametrize(
    ("config", "beside"),
    [
        ("config.json", "config.connections.json"),
        ("plant.yaml", "plant.connections.yaml"),
        ("plant.yml", "plant.connections.yaml"),
        ("PLANT.YML", "PLANT.connections.yaml"),
        ("flows", "flows.connections.json"),
        (".yaml", ".yaml.connections.json"),
        ("plant.v2.yaml", "plant.v2.connections.yaml"),
        ("conf/plant.toml", "conf/plant.connections.json"),
    ],
)
def test_the_connections_are_beside_the_config_in_its_format(config, beside):
    assert companion(Path(config), "connections") == Path(beside)


def test_a_connections_file_is_an_object_from_name_to_connection():
    connections, diagnostics = told(
        """
        yard: {type: well, host: a, password: "${PASS}", depth: 3}
        brook: {type: mill, host: c}
        """
    )

    assert diagnostics == []
    assert connections == {
        "yard": Well(host="a", depth=3, password=Secret("${PASS}")),
        "brook": Mill(host="c"),
    }


def test_there_may_be_no_connection():
    assert told("{}") == ({}, [])


def test_everything_that_is_wrong_with_the_connections_is_told():
    assert told(
        """
        yard: {type: well, depth: 100, hots: a}
        barn: {type: wel, host: a}
        " ": {type: mill, host: c}
        shed: {host: c}
        loft: nats://app:s3cret@bus
        attic: {type: well, host: a, password: 12345}
        gate: {type: spring}
        brook: {type: mill, host: c}
        """
    ) == (
        None,
        [
            "2:35: yard.depth: expected an integer of at least 1 and of at most 99, found 100",
            "2:40: yard.hots: unknown key 'hots'",
            '3:22: barn.type: unknown type "wel"',
            '4:9: [" "]: the name of a connection must not be blank',
            "5:15: shed: 'type' is required",
            "6:15: loft: expected an object whose 'type' is one of mill, well, found a string",
            "7:48: attic.password: expected a string, usually a ${NAME} reference, found a number",
            '8:22: gate.type: unknown type "spring"',
        ],
    )


@pytest.mark.parametrize("text", ["[]", "null", "s3cret", "3"])
def test_a_connections_file_that_is_no_object_is_refused(text):
    connections, (diagnostic,) = told(text)

    assert connections is None
    assert diagnostic.startswith("1:1: : expected an object, found ")
    assert "s3cret" not in diagnostic


def test_references_in_connections_are_warned_of_and_broken_ones_refused():
    warned = told("yard: {type: well, host: a, password: '${A}${B}'}", Secrets({"A": "a"}, {}))
    refused = told("yard: {type: well, host: a, password: '${'}", Secrets({}, {}))

    assert warned == (
        {"yard": Well(host="a", password=Secret("${A}${B}"))},
        [
            "1:39: yard.password: warning:"
            " nothing resolves '${B}': looked in the environment and the secrets file"
        ],
    )
    assert refused == (
        None,
        ["1:39: yard.password: a '${' here starts no reference"],
    )


def test_a_plain_setting_of_a_connection_that_looks_like_a_reference_is_warned_of():
    text = "yard: {type: well, host: '${HOST}', password: '${PASS}'}"

    assert told(text)[1] == [
        "1:26: yard.host: warning: '${' is taken as it stands here: only secrets resolve references"
    ]


def test_one_connection_has_its_name_beside_its_own_keys():
    loaded, diagnostics = load_connection(
        written("{id: yard, type: well, host: '${HOST}', password: '${PASS}'}"), CATALOGUE
    )

    assert loaded == ("yard", Well(host="${HOST}", password=Secret("${PASS}")))
    assert plain(diagnostics) == [
        "1:30: host: warning: '${' is taken as it stands here: only secrets resolve references"
    ]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[]", ["1:1: : expected an object with 'id' and 'type', found a list"]),
        ("{type: mill, host: a}", ["1:1: id: this key is required"]),
        ("{type: mill, host: a, Id: b}", ["1:23: Id: unknown key 'Id'"]),
        ("{id: a, type: mill, host: a, ids: b}", ["1:30: ids: unknown key 'ids'"]),
        (
            "{id: '', type: mil, host: a}",
            ["1:6: id: this must not be blank", '1:16: type: unknown type "mil"'],
        ),
    ],
)
def test_everything_that_is_wrong_with_one_connection_is_told(text, faults):
    loaded, diagnostics = load_connection(written(text), CATALOGUE)

    assert (loaded, plain(diagnostics)) == (None, faults)


def test_what_is_filed_is_known_although_it_has_faults():
    text = "{yard: {type: well}, brook: {type: mill, host: c}, barn: {type: wel}, loft: 3}"
    known = ConnectionsFile(written(text), CATALOGUE).filed()

    assert {name: each.kind for name, each in known.items()} == {
        "yard": "well",
        "brook": "mill",
        "barn": "",
        "loft": "",
    }


def test_a_connection_of_the_right_kind_is_fine():
    assert [*misnamed(settings_of(Bucket(connection="yard")), FILED)] == []
    assert [*misnamed(settings_of(Spring()), FILED)] == []


def test_a_name_that_is_not_filed_lists_those_of_the_right_kind():
    (fault,) = misnamed(settings_of(Bucket(connection="yrad")), FILED)

    assert (
        fault.path,
        fault.code,
        fault.message,
        fault.found,
        fault.expected,
        fault.suggestion,
    ) == (
        ("connection",),
        "unknown-connection",
        "there is no well connection 'yrad'",
        '"yrad"',
        "one of barn, yard",
        "did you mean 'yard'?",
    )


def test_a_name_of_another_kind_says_which_it_is_and_which_is_needed():
    (fault,) = misnamed(settings_of(Wheel(connection="yard")), FILED)

    assert (fault.message, fault.expected, fault.suggestion) == (
        "'yard' is a well connection, and a mill connection is needed",
        "one of brook",
        None,
    )


def test_with_none_of_the_kind_filed_there_is_none_to_name():
    fault = connection_fault("brook", "mill", {"yard": Well(host="a")})

    assert fault is not None
    assert (fault.message, fault.expected) == (
        "there is no mill connection 'brook'",
        "a mill connection; none is filed",
    )


def test_a_connection_whose_kind_is_unknown_is_not_held_against_its_readers():
    known = ConnectionsFile(written("{yard: {type: wel}}"), CATALOGUE).filed()

    assert [*misnamed(settings_of(Bucket(connection="yard")), known)] == []


def test_secrets_that_do_not_resolve_are_told_with_their_path():
    component = Gate(token=Secret("${A}${B}"))

    faults = [*secret_faults(settings_of(component), Secrets({"A": "a"}, {}))]

    assert [(fault.path, fault.message) for fault in faults] == [
        (
            ("token",),
            "nothing resolves '${B}': looked in the environment and the secrets file",
        )
    ]
    assert [*secret_faults(settings_of(component), Secrets({"A": "", "B": ""}, {}))] == []


def test_a_secrets_file_is_one_flat_object_of_strings():
    document = read('{"NATS_USER": "app", "NATS_PASS": ""}', "s.json", "json")

    assert load_secrets(document) == ({"NATS_USER": "app", "NATS_PASS": ""}, [])


def test_no_value_of_a_secrets_file_is_ever_told():
    document = read(
        '{"A": "s3cret",\n "B": 12345678,\n "C": {"D": "s3cret"},\n "E": null}', "s.json", "json"
    )

    secrets, diagnostics = load_secrets(document)

    assert secrets is None
    assert plain(diagnostics) == [
        "2:7: B: expected a string, found a number",
        "3:7: C: expected a string, found an object",
        "4:7: E: expected a string, found null",
    ]
    assert [(each.found, each.expected) for each in diagnostics] == [
        ("a number", "a string"),
        ("an object", "a string"),
        ("null", "a string"),
    ]


def test_a_secrets_file_that_is_no_object_is_refused_without_a_word_of_it():
    document = read('["s3cret"]', "s.json", "json")

    secrets, diagnostics = load_secrets(document)

    assert secrets is None
    assert plain(diagnostics) == ["1:1: : expected an object, found a list"]


def written_json(value):
    return read(json.dumps(value), None, "json")


def test_a_file_and_a_post_are_refused_with_what_no_build_would_take():
    class Halved(Connection, kind="halved"):
        user: str | None = option(Text(), "One half.", default=None)
        password: str | None = option(Text(), "The other.", default=None)

        def examine(self, context):
            if (self.user is None) != (self.password is None):
                yield Fault("conflict", "one half of a credential", path=("user",))

    known = Catalogue([Halved])
    half = {"type": "halved", "user": "me"}

    connections, said = load_connections(written_json({"a": half}), known)
    filed, told = load_connection(written_json({"id": "a", **half}), known)

    assert (connections, filed) == (None, None)
    assert [(each.path, each.code, each.message) for each in said] == [
        ("a.user", "conflict", "one half of a credential")
    ]
    assert [(each.path, each.code, each.message) for each in told] == [
        ("user", "conflict", "one half of a credential")
    ]


def test_a_post_is_refused_a_reference_that_is_none_and_warned_of_one_that_nothing_answers():
    def posted(password):
        document = written_json({"id": "a", "type": "well", "host": "h", "password": password})
        filed, said = load_connection(document, CATALOGUE, Secrets({}, {}))
        return filed is not None, [(each.severity.value, each.path) for each in said]

    assert posted("${") == (False, [("error", "password")])
    assert posted("${PASS}") == (True, [("warning", "password")])


@pytest.mark.parametrize("name", ["", " ", "x" * 1001])
def test_a_name_that_cannot_be_posted_is_none_in_a_file_either(name):
    well = {"type": "mill", "host": "h"}

    filed, told = load_connection(written_json({"id": name, **well}), CATALOGUE)
    connections, said = load_connections(written_json({name: well}), CATALOGUE)

    assert (filed, connections) == (None, None)
    assert [each.code for each in told] == [each.code for each in said]
