"""The program that searches for the best files of every size."""
