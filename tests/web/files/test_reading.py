"""The files of a command line: which of them count, in which format, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.text.render import render
from headrace.web.files.reading import Files, Loaded, load

CONFIG = """
- id: p
  inputs: [{type: dummy, duration: 1}]
  outputs: [{type: file, connection: disk, path: out}]
"""
PLAIN = '[{"id": "p", "inputs": [{"type": "dummy", "duration": 1}]}]'
DISK = '{"disk": {"type": "file", "root": "data"}}'


def said(loaded: Loaded, folder: Path) -> list[str]:
    """Return what is wrong, a line each, with names as they are in the folder."""
    lines = render(loaded.diagnostics, style="plain").splitlines()
    return [line.replace(f"{folder}/", "") for line in lines]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "plant.yml"
    file.write_text(CONFIG)
    return file


def test_the_connections_beside_the_config_are_read(config: Path, components: Catalogue) -> None:
    (config.parent / "plant.connections.yaml").write_text("disk: {type: file, root: data}")

    loaded = load(Files(config), components)

    assert said(loaded, config.parent) == []
    assert [*loaded.connections] == ["disk"]


def test_named_connections_take_their_place_in_the_format_of_their_own_name(
    config: Path, components: Catalogue
) -> None:
    (config.parent / "plant.connections.yaml").write_text("{")
    (config.parent / "other.json").write_text(DISK)

    loaded = load(Files(config, config.parent / "other.json"), components)

    assert said(loaded, config.parent) == []
    assert [*loaded.connections] == ["disk"]


def test_connections_beside_the_config_may_be_missing_and_named_ones_may_not(
    tmp_path: Path, components: Catalogue
) -> None:
    config = tmp_path / "plant.json"
    config.write_text(PLAIN)

    assert said(load(Files(config), components), tmp_path) == []
    named = load(Files(config, tmp_path / "nowhere.json"), components)
    assert (said(named, tmp_path), named.is_refused) == (["nowhere.json: no such file"], True)


def test_broken_connections_refuse_and_say_nothing_of_the_names_in_them(
    config: Path, components: Catalogue
) -> None:
    (config.parent / "plant.connections.yaml").write_text("disk: {type: file, rot: data}")

    loaded = load(Files(config), components)

    assert said(loaded, config.parent) == [
        "plant.connections.yaml:1:20: disk.rot: unknown key 'rot' (did you mean 'root'?)"
    ]
    assert loaded.is_refused


def test_the_secrets_are_json_whatever_their_file_is_called(
    tmp_path: Path, components: Catalogue
) -> None:
    (tmp_path / "json.yaml").write_text('{"TOKEN":\t"s3cret"}')
    (tmp_path / "yaml.yaml").write_text("TOKEN: s3cret")

    read = load(Files(secrets=tmp_path / "json.yaml"), components)
    refused = load(Files(secrets=tmp_path / "yaml.yaml"), components)

    assert read.secrets.lookup("TOKEN") == "s3cret"
    assert said(refused, tmp_path) == [
        "yaml.yaml:1:1: this word is not JSON: a string takes double quotes"
    ]
    assert refused.is_refused


def test_the_secrets_that_are_named_have_to_be_there(tmp_path: Path, components: Catalogue) -> None:
    loaded = load(Files(secrets=tmp_path / "nowhere.json"), components)

    assert (said(loaded, tmp_path), loaded.is_refused) == (["nowhere.json: no such file"], True)


def test_without_a_config_there_is_nothing_to_run(components: Catalogue) -> None:
    loaded = load(Files(), components)

    assert loaded.program is not None
    assert (loaded.program.pipelines, loaded.is_refused) == ((), False)


@pytest.mark.parametrize(
    ("files", "refusal"),
    [
        ({"secrets": "plant.yml"}, "plant.yml: this is the config, and cannot be the secrets file"),
        ({"settings": "link"}, "link: this is the config, and cannot be the settings file"),
        ({"connections": "other"}, "other: this is the config, and cannot be the connections file"),
        (
            {"settings": "plant.layout.json"},
            "plant.layout.json: this is the layout file, and cannot be the settings file",
        ),
        (
            {"secrets": "plant.connections.yaml"},
            "plant.connections.yaml: this is the connections file, and cannot be the secrets file",
        ),
    ],
)
def test_one_file_is_not_for_two_things(
    config: Path, components: Catalogue, files: dict[str, str], refusal: str
) -> None:
    folder = config.parent
    (folder / "link").symlink_to("plant.yml")
    (folder / "other").hardlink_to(config)

    loaded = load(
        Files(config, **{each: folder / name for each, name in files.items()}), components
    )

    assert f"{refusal} as well" in said(loaded, folder)
    assert loaded.is_refused


def test_files_that_are_absolute_go_by_the_names_they_were_given(
    config: Path, components: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config.parent)
    (config.parent / "plant.connections.yaml").write_text("disk: {type: file, rot: data}")
    files = Files(Path("plant.yml")).absolute()
    monkeypatch.chdir("/")

    loaded = load(files, components)

    assert (files.config, loaded.base) == (config, config.parent)
    assert {each.file for each in loaded.diagnostics} == {"plant.connections.yaml"}
