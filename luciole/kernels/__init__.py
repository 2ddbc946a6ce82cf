"""How operators compute: a readable NumPy reference for each, compiled kernels beside some.

An operator's kernels are in the module that has its module's name in ``ir.ops``; those for
quantized tensors may be in ``integers``. What several share is in ``layers``, ``learned`` (levels),
``integers`` and ``recurrent``, what all share beside the operators, and what is compiled is made of
``jit``.
"""
