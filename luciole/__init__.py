"""luciole: read, quantize, run and look at .circle and .tflite models."""

__version__ = "0.1.0"
