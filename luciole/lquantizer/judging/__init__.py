"""Say which records judge, and what a network lost on them."""
