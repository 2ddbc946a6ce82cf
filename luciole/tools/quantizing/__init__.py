"""``luciole quantize`` and ``lquantizer``: one program, under two names."""
