"""What a kernel is and how it is found, what it may rely on and how much memory it may take."""
