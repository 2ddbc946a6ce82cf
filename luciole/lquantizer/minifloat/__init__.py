"""Networks that compute with floats of a few bits."""
