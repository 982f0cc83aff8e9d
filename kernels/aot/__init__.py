"""Ahead-of-time builds of the Triton kernels: without a GPU, for one that is named."""
