"""Operations of the engine, each with a torch reference and faster kernels. Imports nothing of it.

Knows tensors alone: no core, no plugin, no request. `plugins/engines/cuda` is the one user.
"""
