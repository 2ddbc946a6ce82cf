"""Take the softmax off a network's end, so that it gives logits, and check what was written."""

from __future__ import annotations

import numpy as np
from digits import MODEL, images

import luciole

model = luciole.load(MODEL)
softmax = model.graph.ops[-1]
scores = model.graph.ops[-2].output
model.graph.outputs = [scores]
model.graph.remove(softmax)
luciole.save(model, "logits.circle")

(logits,) = luciole.run("logits.circle", images("test")).values()
(probabilities,) = luciole.run(MODEL, images("test")).values()
print("findings:", luciole.verify("logits.circle"))
print("same answers:", np.array_equal(logits.argmax(-1), probabilities.argmax(-1)))
