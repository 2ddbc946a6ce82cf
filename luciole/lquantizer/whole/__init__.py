"""Quantize whole networks: what a call of quantize comes to."""
