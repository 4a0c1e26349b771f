"""Mappings as the tests write them."""


def a_map(*mappings, **options):
    return {"mappings": [*mappings], **options}


def copy(from_, as_=None, **options):
    named = {"type": "copy", "from": from_, **options}
    return named if as_ is None else named | {"as": as_}


def constant(value, as_):
    return {"type": "constant", "value": literal(value), "as": as_}


def literal(value):
    kind = {str: "text", bool: "boolean", type(None): "null"}.get(type(value), "number")
    return {"type": kind} if value is None else {"type": kind, "value": value}


def coalesce(*from_, as_="out", **options):
    return {"type": "coalesce", "from": [*from_], "as": as_, **options}


def cast(from_, to, **options):
    return {"type": "cast", "from": from_, "to": to, **options}


def concat(*parts, as_="out"):
    """A part in a list is a field."""
    spelt = [
        {"type": "field", "field": part[0]}
        if isinstance(part, list)
        else {"type": "value", "value": part}
        for part in parts
    ]
    return {"type": "concat", "parts": spelt, "as": as_}


def arithmetic(left, operator, right, as_="out"):
    """A string is a field."""
    left, right = (
        {"type": "field", "field": side}
        if isinstance(side, str)
        else {"type": "value", "value": side}
        for side in (left, right)
    )
    return {"type": "arithmetic", "left": left, "operator": operator, "right": right, "as": as_}


def drop(*fields):
    return {"type": "drop", "from": [*fields]}


def template(text, as_="out", **options):
    return {"type": "template", "template": text, "as": as_, **options}
