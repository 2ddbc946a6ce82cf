"""Compiled loops over elements that many operators share, each under one name of the field."""
