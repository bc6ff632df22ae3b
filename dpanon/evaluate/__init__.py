"""How well an attack works on speech (EER, linkability) and how useful the speech still is (WER, f0, quality)."""

from dpanon.errors import DpanonError


class EvaluationError(DpanonError):
    """A figure that would be meaningless is refused instead of printed."""
