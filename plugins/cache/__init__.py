"""Stores: bytes by name, in this process or shared."""
