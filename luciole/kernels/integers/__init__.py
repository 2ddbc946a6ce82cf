"""How quantized tensors are computed: on integers, bit for bit as TFLite's reference kernels do."""
