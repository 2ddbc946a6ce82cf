"""Models to files."""

from luciole.exporters.files import check_target, save, to_bytes

__all__ = ["check_target", "save", "to_bytes"]
