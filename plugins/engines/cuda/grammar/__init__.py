"""Answers held to a grammar: backends that compile, and when a grammar begins. Imports no backend
before one is asked for."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.grammar.compiling import BACKENDS, CompiledGrammars, grammars

__all__ = ("BACKENDS", "CompiledGrammars", "grammars")
