"""Assign a format to every layer: by one word, a configuration, or another tool's."""
