"""How layers of floats are computed: tiles of results that stay in vector registers."""
