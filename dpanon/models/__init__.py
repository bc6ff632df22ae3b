"""Networks: bottleneck extractor, pitch auto-encoder; each with its configuration beside it."""
