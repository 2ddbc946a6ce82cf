"""Kernels of quantized tensors: on integers, bit for bit as TFLite's reference kernels compute."""
