"""Learn a number format for an array: one module for each kind of format."""
