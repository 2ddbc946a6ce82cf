"""Circle and TFLite files."""
