"""Share the parts that all programs need: how they start and end, read, write, show and measure."""
