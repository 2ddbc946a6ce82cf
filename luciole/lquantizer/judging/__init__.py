"""Part records, and judge the bytes of files by those that taught nothing."""
