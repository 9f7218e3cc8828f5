"""Training methods, one recipe per file."""
