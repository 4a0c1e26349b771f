"""What is wrong with a value that is no time. Texts name types and formats, never content."""


class NotATime(ValueError):
    """A value is of the right type, and no time that can be meant. The text is a predicate."""
