"""The one training loop, with exact resume."""
