"""Run operators without Python: as calls of the C functions in ``luciole/kernels/c``."""
