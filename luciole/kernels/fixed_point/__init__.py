"""Arithmetic of quantized tensors on integers alone, bit for bit that of TFLite's kernels."""
