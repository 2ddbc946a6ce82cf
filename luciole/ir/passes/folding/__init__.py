"""Compute beforehand, and fold operators into their neighbours."""
