"""Samsung ONE's programs by their own names and options, each run by one of ours."""
