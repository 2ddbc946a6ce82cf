"""Compute operators: a readable NumPy reference for each, compiled kernels beside some.

An operator's kernels are in the module that has its module's name in ``ir.ops``, those for
quantized tensors in ``integers`` where they would fill a file of their own. Below are the storeys
they stand on, each of which imports only those before it: ``jit`` (how loops are compiled;
``jit.vector``, their instructions), ``arrays`` (NumPy arithmetic), ``core`` (what a kernel is),
``fixed_point``, ``elements`` (loops that many operators share), ``layers`` and ``recurrent``.
"""
