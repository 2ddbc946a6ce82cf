"""A model as people and other programs read it: text, and JSON's lists and dictionaries."""
