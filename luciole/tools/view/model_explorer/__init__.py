"""An adapter with which Model Explorer opens every file that luciole reads."""
