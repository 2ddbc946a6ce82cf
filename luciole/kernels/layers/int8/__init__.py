"""Kernels of layers with weights of 8 bits, under quantized inputs or floats (hybrid)."""
