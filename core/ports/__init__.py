"""The ports: what each kind of plugin must be. One abstract class a file, its laws beside it."""
