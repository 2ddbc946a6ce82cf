"""Prove models on the way to their files."""
