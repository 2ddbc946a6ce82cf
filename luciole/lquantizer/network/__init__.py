"""Walk over a network: which layers are learned, in which order, and what is measured of them."""
