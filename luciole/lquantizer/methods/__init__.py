"""Learn one layer: one module for each method."""
