"""Activations: one pass per image, kept by content, read by every detector."""
