"""The one error of the set-up."""


class SetupError(Exception):
    """The set-up cannot go on; the text is one line that says what is wrong and what to do."""
