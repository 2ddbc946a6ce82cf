"""Choose a format for each layer."""
