"""Rules by family: one function for each operator class."""
