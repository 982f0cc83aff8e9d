"""Conformance kits: what a port promises, as named checks that any plugin can be put through."""
