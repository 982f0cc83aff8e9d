"""Guards: who may come in, and as whom."""
