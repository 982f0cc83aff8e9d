"""Networks: their configuration, the families, and the one decoder that all of them are."""
