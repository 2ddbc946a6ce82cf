"""Write a quantized network as C99, compile it for this machine (gcc or clang), and compare."""

from __future__ import annotations

import numpy as np
from digits import MODEL, images

import luciole

small = luciole.quantize(MODEL, images("train"), scheme="levels:w2a2").model
program = luciole.compile(small, "firmware", "digits", library=True)
print(*sorted(program.files))

compiled = luciole.Compiled("firmware/digits.so")
name = small.graph.inputs[0].name
for image in images("test")[:100]:
    (in_c,) = compiled.run({name: image[None]})
    (here,) = luciole.Interpreter(small).run(image[None]).values()
    assert np.allclose(in_c, here, atol=1e-6)
print("100 images: C and Python agree")
