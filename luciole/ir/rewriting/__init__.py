"""Write passes: find patterns, edit graphs, and compare what is computed as algebra."""
