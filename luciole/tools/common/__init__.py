"""What all programs share: how they start and end, read, write and show, and what is measured."""
