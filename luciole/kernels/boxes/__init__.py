"""Compiled kernels that select among boxes."""
