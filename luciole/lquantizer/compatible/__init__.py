"""Other tools' numbers and configurations."""
