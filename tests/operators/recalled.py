"""A transform `recall` as the tests write it."""

from headrace.operators.recall import Recall
from tests.operators.keyed import Keyed

REMEMBERED = {"m1": {"mode": "auto", "speed": 3}, "m2": {"mode": None}, "7": {"mode": "off"}}


def recall(*names, **options):
    return Recall.load({"recall": list(names or ["mode"]), **options})


def keyed(lowering, *transforms, remembered=REMEMBERED, **options):
    """Return a chain whose bucket holds something."""
    it = Keyed(lowering, *transforms, **options)
    it.bucket.merge(remembered)
    return it
