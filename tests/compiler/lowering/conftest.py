"""What the tests of lowering ask for."""

import pytest

from tests.compiler.lowering.chains import Chain


@pytest.fixture
def chain():
    return Chain()
