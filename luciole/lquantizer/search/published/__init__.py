"""The published search: widths of 2 to 8 bits by NSGA-II, candidates trained a little."""
