"""Drop what does nothing and what stands twice."""
