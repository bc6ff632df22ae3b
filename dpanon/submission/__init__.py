"""VoicePrivacy challenges: what their data are called, and how a result is handed in."""

from dpanon.errors import DpanonError


class SubmissionError(DpanonError):
    """A piece of a submission is missing or is not what the organisers take; the message names it."""
