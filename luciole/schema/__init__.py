"""Describe the file format: its tables, what is derived from them, and how bytes are read and
written.
"""
