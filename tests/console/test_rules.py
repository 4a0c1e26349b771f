"""The table of the interactions tells what is tested."""

from tests.console import rules


def test_the_table_of_the_interactions_is_up_to_date() -> None:
    assert rules.TABLE.read_text() == rules.table(), "run 'python -m tests.console.rules'"
