"""What several protocols say in the same words. No plugin."""
