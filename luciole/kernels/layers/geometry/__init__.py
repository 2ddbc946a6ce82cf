"""How layers go over their inputs: windows, spans and tiles of results."""
