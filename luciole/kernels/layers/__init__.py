"""How dense layers and convolutions go over their inputs: windows, spans and tiles of results."""
