"""Attackers that try to recognise the speaker of released speech."""
