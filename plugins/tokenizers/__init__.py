"""Tokenizers: text to ids, ids to bytes."""
