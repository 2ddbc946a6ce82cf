"""Files and frameworks to models. ``load`` looks at what a file is, not at what it is called."""

from luciole.importers.circle.model import from_bytes, import_model
from luciole.importers.files import load, load_with_findings

__all__ = ["from_bytes", "import_model", "load", "load_with_findings"]
