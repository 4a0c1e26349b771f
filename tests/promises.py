"""The promises of docs/delivery.md that tests hold.

    @promise("kafka.on_delivery.kill")
    def test_whatever_was_published_is_in_the_files_however_often_it_is_killed(): ...

`make docs` lists the tests beside the promises, by the text of the files: names are written out. `pytest -m
promise` runs all of them.
"""

from __future__ import annotations

import pytest


def promise(*names: str) -> pytest.MarkDecorator:
    """Return the mark of a test that holds these promises."""
    return pytest.mark.promise(*names)
