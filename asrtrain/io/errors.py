"""The exception for mistakes that a user can mend."""


class UserError(Exception):
    """A mistake in the input, shown as one line without a traceback; exit status 1.

    The message names the file and the utterance, what was found, what was expected and what to do.
    """
