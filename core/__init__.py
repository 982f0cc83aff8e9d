"""Tokenwire's core: the version and nothing else; import from the modules below."""

__version__ = "0.1.0"
