"""How layers of learned levels are computed: packed bits, counted."""
