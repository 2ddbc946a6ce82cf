"""How layers with weights of 8 bits are computed, under quantized inputs or floats (hybrid)."""
