"""The one exception of the privacy core."""


class PrivacyError(ValueError):
    """A parameter, an input or a claim for which no guarantee can be stated."""
