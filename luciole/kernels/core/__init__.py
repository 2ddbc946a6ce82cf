"""Contract between operators and kernels: registration, lookup, memory and its limits."""
