"""Kernels of layers with weights of 8 bits under inputs of 16 bits."""
