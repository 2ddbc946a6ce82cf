"""Dense layers and convolutions, by the numbers that their weights are."""
