"""Kernels of layers of learned levels: packed bits, counted."""
