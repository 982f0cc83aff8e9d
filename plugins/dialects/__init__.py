"""Dialects: how a model family is asked, and how its answers are read."""
