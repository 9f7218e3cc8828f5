"""Training a generator: recipe, loop, and what is written."""
