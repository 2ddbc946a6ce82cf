"""Offer command-line programs: one file each, what they share in files of its own."""
