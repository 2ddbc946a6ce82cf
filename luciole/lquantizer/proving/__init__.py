"""Run the bytes of files, and judge them by the float network that they stand for."""
