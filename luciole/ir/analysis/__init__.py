"""Tell facts of a graph that several rooms need."""
