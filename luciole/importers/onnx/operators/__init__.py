"""Rules for ONNX's operators, a file for each family."""
