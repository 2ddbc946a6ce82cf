"""``circle-view``: a model as a page to explore, a single offline file or a picture."""
