"""Cut models: parts of them, other ends, other shapes, parameters of other tools."""
