"""Arithmetic on NumPy's arrays that several reference kernels share."""
