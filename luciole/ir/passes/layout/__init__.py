"""Move TRANSPOSE and RESHAPE until they meet and go."""
