"""Write a page that shows a network beside its 2-bit form, and a drawing of one."""

from __future__ import annotations

from pathlib import Path

from digits import MODEL, images

import luciole

result = luciole.quantize(MODEL, images("train"), scheme="levels:w2a2")
luciole.view(MODEL, result, data=images("test")[:100]).save("compare.html")
luciole.view(MODEL).save("digits.svg")
print(luciole.summary(result.model))
print(*(f"{name}: {Path(name).stat().st_size:,} bytes" for name in ("compare.html", "digits.svg")))
