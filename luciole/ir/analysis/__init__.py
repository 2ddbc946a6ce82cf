"""Tell facts of a graph that several rooms need: figures, widths, lifetimes, where tensors lie."""
