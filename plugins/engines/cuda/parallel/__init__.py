"""Several ranks that serve one model: their groups, their exchange of rows, their processes."""
