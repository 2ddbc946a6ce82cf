"""An adapter with which Model Explorer opens .circle, .tflite and ONNX files."""
