"""What several dialects need: marker search, a JSON cursor, an event collector. No plugin."""
