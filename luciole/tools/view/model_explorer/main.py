"""Open models in Model Explorer, which finds this module by its option:

model-explorer --extensions=luciole.tools.view.model_explorer model.circle
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model_explorer import Adapter, AdapterMetadata
from model_explorer.graph_builder import GraphCollection

from luciole.drawing.blobs import Blobs
from luciole.drawing.described import Look, described
from luciole.tools.view.explorer import explorer_graphs
from luciole.tools.view.opening import opened_subject


class LucioleAdapter(Adapter):  # type: ignore[misc]  # the package has no types
    """Shows learned levels, formats and groups, of .tflite and ONNX files, too."""

    metadata = AdapterMetadata(
        id="luciole",
        name="luciole",
        description="Shows the formats and the levels of layers, and circle's own operators.",
        fileExts=["circle", "tflite", "onnx"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the graphs of a file. Raises LucioleError for what is no model."""
        path = Path(model_path)
        subject = opened_subject(path.name, path.read_bytes())
        graphs = explorer_graphs(described([subject], Blobs(), Look()))
        return {"graphCollections": [GraphCollection(**graphs)]}
