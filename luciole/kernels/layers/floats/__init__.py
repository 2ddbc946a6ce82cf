"""Kernels of float layers: tiles of results that stay in vector registers."""
