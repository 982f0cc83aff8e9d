"""Operations of the engine, each with a torch reference and faster kernels. Imports nothing of it.

Knows tensors alone: no core, no plugin, no request. `plugins/engines/cuda` is the one user.
"""

import os

# Why here: Triton 3.10 turns fused multiply-add off where nothing is said, 3.9 warns of it, and
# the results of a kernel, and its place in Triton's cache, must not depend on the version.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
