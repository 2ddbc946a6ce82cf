"""Programs that cut models: each a file, and what they share."""
