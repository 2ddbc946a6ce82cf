"""The file format: its tables, what is derived from them, and reading and writing their bytes."""
