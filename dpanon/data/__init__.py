"""Where speech comes from and goes to: audio files, data directories, float arrays."""
