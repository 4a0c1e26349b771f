"""Configs and pipelines that are read without a fault."""

from headrace.compiler.config.program import load_pipeline
from headrace.compiler.text.documents import read
from tests.compiler.catalogued import (
    CATALOGUE,
    plain,
    program,
)


def only(text):
    """Return the one pipeline of a YAML text."""
    (pipeline,) = program(text).pipelines
    return pipeline


def posted(text, *, running=(), connections=None):
    """Return what is made of a JSON body: the config, and what is said about it."""
    document = read(text, None, "json")
    config, diagnostics = load_pipeline(
        document, CATALOGUE, running=running, connections=connections
    )
    return config, plain(diagnostics)


def sieve(options):
    return f"[{{inputs: [{{type: spring}}], transforms: [{{type: sieve, field: f,\n{options}}}]}}]"
