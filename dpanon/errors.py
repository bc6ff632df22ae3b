"""The errors a user may meet. Each says where, what was expected and found, and what to do next.

``dpanon.cli.run`` prints one line for them and exits with ``exit_code``. The privacy core imports
nothing from here: it has its own ``dpanon.privacy.errors.PrivacyError``.
"""


class DpanonError(Exception):
    """An expected failure: the message alone tells the user what to do."""

    exit_code = 1


class DataDirError(DpanonError):
    """A data directory, or a table in it, is not what it has to be."""


class AudioError(DpanonError):
    """A file that cannot be read as speech; the message names the file and the reason."""


class MissingDependencyError(DpanonError):
    """An optional package or program is absent; the message holds the line that installs it."""


class ConfigError(DpanonError):
    """A configuration file or a ``--set`` is wrong."""

    exit_code = 2


class UsageError(DpanonError):
    """A command was called in a way that cannot be meant."""

    exit_code = 2


class StaleError(DpanonError):
    """An output exists that was made from other inputs; nothing is rebuilt by itself."""

    exit_code = 3
