"""Watch a network while data runs: which rows a layer meets, and what of them a fit needs."""
