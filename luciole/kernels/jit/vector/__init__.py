"""Instructions on vector registers, for compiled loops to call as functions."""
