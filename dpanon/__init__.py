"""Differentially private speaker anonymization: what is computed and what is promised."""

__version__ = "0.1.0"
