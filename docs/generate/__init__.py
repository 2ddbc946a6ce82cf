"""What of the site is made from the code when the site is built."""
