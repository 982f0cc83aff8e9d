"""Protocols: bytes of one wire format to calls, events back to bytes."""
