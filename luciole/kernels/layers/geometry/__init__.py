"""Geometry of layers over their inputs: windows, spans and tiles of results."""
