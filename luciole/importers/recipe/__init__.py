"""ONE's model recipes (protobuf text)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.importers.reader import ModelReader

if TYPE_CHECKING:
    from luciole.importers.imported import Imported

_START = re.compile(
    rb"(?:\s|#[^\n]*\n)*(?:operand|operation|graph|signature_def|input|output|name|version)\s*[:{<]"
)


class RecipeReader(ModelReader):
    """Cooks recipes: random constants start from seed 0."""

    name = "ONE's recipe"
    extensions = (".recipe",)

    def recognises(self, start: bytes) -> bool:
        """Look for a field of a recipe behind comments."""
        return _START.match(start) is not None

    def read(self, path: Path) -> Imported:
        """Cook a recipe."""
        from luciole.importers.recipe.cook import cook_file

        return cook_file(path)

    def read_bytes(self, data: bytes) -> Imported:
        """Cook a recipe's text."""
        from luciole.importers.recipe.cook import cook

        return cook(data)
