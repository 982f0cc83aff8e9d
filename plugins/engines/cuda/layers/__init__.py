"""The parts that networks are made of. They hold weights and no other state."""
