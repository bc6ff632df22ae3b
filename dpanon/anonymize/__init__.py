"""One utterance from recording to release, with the shipped models."""
