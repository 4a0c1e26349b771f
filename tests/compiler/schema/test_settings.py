"""Settings: every single one of a record, wherever in it it is."""

from headrace.compiler.schema.fields import Integer, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf, RecordOf, settings, settings_of


class Drawer(Record):
    """What is pulled out."""

    width: int = option(Integer(), "How wide.")
    label: str | None = option(Text(), "What is written on it.", default=None)


class Chest(Record):
    """Drawers."""

    top: Drawer = option(RecordOf(Drawer), "The first one.")
    drawers: tuple[Drawer, ...] = option(ListOf(RecordOf(Drawer)), "The others.", default=())
    words: tuple[str, ...] = option(ListOf(Text()), "Words.", default=(), wire="Words")


def test_the_settings_of_a_record_are_found_wherever_they_are():
    chest = Chest(
        top=Drawer(width=3, label="a"), drawers=(Drawer(width=4), Drawer(width=5)), words=("b", "c")
    )

    found = [(path, type(field), value) for path, field, value in settings_of(chest)]

    assert found == [
        (("top", "width"), Integer, 3),
        (("top", "label"), Text, "a"),
        (("drawers", 0, "width"), Integer, 4),
        (("drawers", 1, "width"), Integer, 5),
        (("Words", 0), Text, "b"),
        (("Words", 1), Text, "c"),
    ]


def test_what_could_be_read_of_a_record_is_enough():
    partial = {"top": {"width": 3}, "Words": ("b",)}

    assert [(path, value) for path, _, value in settings(Chest, partial)] == [
        (("top",), {"width": 3}),
        (("Words", 0), "b"),
    ]
