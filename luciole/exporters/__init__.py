"""Models to files."""

from luciole.exporters.files import save, to_bytes, write_file

__all__ = ["save", "to_bytes", "write_file"]
