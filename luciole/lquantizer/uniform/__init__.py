"""Whole networks of uniform integers."""
