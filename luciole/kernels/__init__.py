"""How operators compute: a readable NumPy reference for each, compiled kernels beside some."""
