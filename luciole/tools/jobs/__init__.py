"""Run the steps of a job, each of which is one of our programs."""
