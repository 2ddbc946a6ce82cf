"""Share what all programs need: how they start and end, read, write and show, and what is
measured.
"""
