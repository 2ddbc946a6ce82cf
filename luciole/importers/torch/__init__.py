"""torch modules and what torch.export saves of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.importers.reader import Example, ModelReader, member_of_folder

if TYPE_CHECKING:
    from luciole.importers.extents import Settled
    from luciole.importers.imported import Imported


class TorchReader(ModelReader):
    """Reads torch modules and exported programs, through torch's own exporter to ONNX."""

    name = "PyTorch"
    extensions = (".pt2",)
    live = "torch.nn.Module"
    extra = "torch"

    def recognises(self, start: bytes) -> bool:
        """Look for an archive as torch writes all of them: its members lie in a folder."""
        return member_of_folder(start) is True

    def read(self, path: Path) -> Imported:
        """Convert an exported program. Raises what ``convert.load`` does."""
        return self.read_for(path, None)

    def read_for(self, path: Path, settled: Settled | None) -> Imported:
        """Convert an exported program whose inputs get extents before nodes are imported."""
        from luciole.importers.torch import convert

        return convert.load(path, settled)

    def takes(self, live: object) -> bool:
        """Return whether an object is a module or an exported program."""
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(
            live, torch.nn.Module | torch.export.ExportedProgram
        )

    def read_live(self, live: object, example: Example, settled: Settled) -> Imported:
        """Trace a module and convert it. Raises what ``convert.from_live`` does."""
        from luciole.importers.torch import convert

        return convert.from_live(live, example, settled)
