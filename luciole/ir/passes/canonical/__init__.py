"""Bring what can be spelled in several ways into one spelling."""
