"""Built-in plugins, one folder a kind. They are entry points like anybody's: no private door."""
