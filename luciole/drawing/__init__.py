"""Draw models and results: the document that ``circle-view`` shows, SVG files, notebooks."""
